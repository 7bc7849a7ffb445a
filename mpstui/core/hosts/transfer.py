"""What a machine does for others that send it code, launches and runs: the far end of :class:`.talk.Place`."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...wire.records import Branch
from ..launching.choice import LaunchChoice
from ..launching.launch import launch_all
from ..launching.planning import LaunchPlan, plan
from ..launching.scheduling import require_scheduler
from ..launching.telling import told
from ..machine import this_machine
from ..model.home import Home, resolve_home
from .calls import Call, CallBook
from .departing import Departure
from .holding import held, hold, let_go
from .offering import Offering
from .parcel import items_of
from .relocation import Places, relocated
from .settling import Arrival
from .stowing import arrived, lacking, place_for, stow
from .talk import Ends, serve


def main(words: Sequence[str]) -> int:
    """Answer until the line ends."""
    home = resolve_home(os.environ)
    arrival, departure = Arrival(home, os.environ), Departure(home, os.environ)
    kept: list[Path] = []
    for number in (signal.SIGTERM, signal.SIGHUP):  # like the end of the line: a run that is about to leave stays
        signal.signal(number, lambda *_: sys.exit())
    try:
        serve(
            {
                "code": lambda asked, ends: _code(asked, home),
                "stow": lambda asked, ends: {"folder": str(stow(asked, ends.receiving(), home))},
                "plan": lambda asked, ends: {"runs": [told(one) for one in _plans(asked, check=False)]},
                "held": lambda asked, ends: {"folder": str(found) if (found := held(asked, home)) else None},
                "hold": lambda asked, ends: {"folder": str(_held(asked, ends, home, kept))},
                "let_go": lambda asked, ends: _let_go(kept),
                "launch": lambda asked, ends: _launch(asked, home),
                **Offering(home).answers(),
                **arrival.answers(),
                **departure.answers(),
            }
        )
    finally:
        departure.close()
        arrival.close()
    return 0


def _held(asked: dict[str, Any], ends: Ends, home: Home, kept: list[Path]) -> Path:
    kept.append(hold(asked, ends.receiving(), home))
    return kept[-1]


def _let_go(kept: list[Path]) -> dict[str, Any]:
    """Remove the checkpoints that arrived over this line: no run will begin from them."""
    while kept:
        let_go(kept.pop())
    return {}


def _code(asked: dict[str, Any], home: Home) -> dict[str, Any]:
    """The folder that already has the code; otherwise which files are missing, and where it would be put."""
    folder = arrived(asked, home)
    items = items_of(asked)
    missing = set(lacking(asked, home)) if folder is None else set[str]()
    size = sum({one.digest: one.size for one in items if one.digest in missing}.values())
    place = str(folder or place_for(asked, home))
    return {"folder": str(folder) if folder else None, "lacking": sorted(missing), "bytes": size, "place": place}


def _plans(asked: dict[str, Any], *, check: bool) -> list[LaunchPlan]:
    """Plan launches for this machine; without ``check``, the code may not have arrived yet."""
    cwd = Path(asked["cwd"]) if asked["cwd"] else Path.home()
    places = Places([(str(old), str(Path(new).expanduser())) for old, new in asked["places"]])
    choices = [relocated(one, cwd, places) for one in asked["launches"]]
    if asked["on"] is not None or asked["job"]:
        choices = [_started_by(one, asked["on"], asked["job"]) for one in choices]
    if asked.get("branch") is not None and asked.get("held") is not None:
        left = Branch(*asked["branch"])
        own = left._replace(checkpoint=str(Path(asked["held"]) / Path(left.checkpoint).name))
        choices = [replace(one, branch=own) for one in choices]
    machine, environ = this_machine(), dict(os.environ)
    return [plan(one, environ=environ, machine=machine, check=check) for one in choices]


def _started_by(choice: LaunchChoice, on: str | None, job: Mapping[str, str]) -> LaunchChoice:
    wished = replace(choice, on=on, job=job)
    require_scheduler(wished)
    return wished


def _launch(asked: dict[str, Any], home: Home) -> dict[str, Any]:
    """Start runs from code, and perhaps a checkpoint, that has arrived; only once for the same call."""

    def work(call: Call) -> dict[str, Any]:
        try:
            plans = _plans(asked, check=True)
            warnings = list(dict.fromkeys(warning for made in plans for warning in made.warnings))
            return {"warnings": warnings, "runs": launch_all(plans, home, dict(os.environ), time.time, call.id)}
        finally:
            if asked.get("held") is not None:
                let_go(Path(asked["held"]))

    book = CallBook(home.state / "calls")
    book.forget()
    return book.once(str(asked["call"]), work)
