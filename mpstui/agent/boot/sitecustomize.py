"""Found by the start of every Python when this folder is on PYTHONPATH: loads the agent's boot, and steps aside.

Any Python may come by, from 2.7 on: this file is written so that each can read it. The folder leaves ``sys.path`` and
the name goes to the ``sitecustomize`` behind, which Homebrew's and Debian's Python have: it runs, fails or is missing
as if this one were not there. Only folders behind ours are searched, so that two that do so do not go in circles.
"""

# ruff: noqa: PTH120, SIM105, UP036
import os
import sys

if sys.version_info >= (3, 9):
    try:
        __import__("_mpstui_boot")
    except Exception:  # noqa: BLE001, S110 - half an installation: the program that we are guests of must not notice
        pass
_kept = sys.modules.pop("sitecustomize", None)  # Python 2 empties a module that nobody holds
_here = os.path.dirname(__file__)
_before = sys.path[: sys.path.index(_here)] if _here in sys.path else []
sys.path[: len(_before) + (_here in sys.path)] = []
try:
    __import__("sitecustomize")
except ImportError:
    if __name__ == "sitecustomize":  # else another one in front has loaded us by itself
        raise
finally:
    sys.path[:0] = _before
if __name__ != "sitecustomize" and _kept is not None:
    sys.modules["sitecustomize"] = _kept
