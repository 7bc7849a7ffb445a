"""No look for garbage while a process starts.

Loading torch and putting a training together makes hardly any. Looking for it all the same, on the way and through all
of torch at the end, took 0.6 of the 2.0 seconds of the processor that a training of two steps needs (torch 2.13, CPU).
"""

from __future__ import annotations

import gc


def look_from_here() -> None:
    """Look for garbage from now on, never through what is there already. Nothing where it was looked for before."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
