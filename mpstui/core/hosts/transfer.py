"""What a machine does for one that sends it code, launches and runs: the far end of :class:`.talk.Place`."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..launching.planning import launch_all, plan
from ..machine import this_machine
from ..model.home import Home, resolve_home
from .departing import Departure
from .parcel import items_of
from .relocation import Places, relocated
from .settling import Arrival
from .stowing import arrived, lacking, stow
from .talk import serve


def main(words: Sequence[str]) -> int:
    """Answer until the line ends."""
    home = resolve_home(os.environ)
    arrival, departure = Arrival(home, os.environ), Departure(home, os.environ)
    try:
        serve(
            {
                "code": lambda asked, ends: _code(asked, home),
                "stow": lambda asked, ends: {"folder": str(stow(asked, ends.receiving(), home))},
                "launch": lambda asked, ends: _launch(asked, home),
                **arrival.answers(),
                **departure.answers(),
            }
        )
    finally:
        departure.close()
    return 0


def _code(asked: dict[str, Any], home: Home) -> dict[str, Any]:
    """Whether code is there already; else what of it is not."""
    folder = arrived(asked, home)
    items = items_of(asked)
    missing = set(lacking(asked, home)) if folder is None else set[str]()
    size = sum({one.digest: one.size for one in items if one.digest in missing}.values())
    return {"folder": str(folder) if folder else None, "lacking": sorted(missing), "bytes": size}


def _launch(asked: dict[str, Any], home: Home) -> dict[str, Any]:
    """Start runs from code that has arrived."""
    cwd = Path(asked["cwd"]) if asked["cwd"] else Path.home()
    places = Places([(str(old), str(Path(new).expanduser())) for old, new in asked["places"]])
    machine, environ = this_machine(), dict(os.environ)
    plans = [plan(relocated(one, cwd, places), environ=environ, machine=machine) for one in asked["launches"]]
    warnings = list(dict.fromkeys(warning for made in plans for warning in made.warnings))
    return {"warnings": warnings, "runs": launch_all(plans, home, environ, time.time)}
