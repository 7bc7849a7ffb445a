"""Loaded when any Python starts with this folder on PYTHONPATH: loads the agent's boot, and steps aside.

Any Python from 2.7 on may load it, so it uses only what all of them understand. The folder leaves ``sys.path``, and
the name goes to the next ``sitecustomize``, which the Pythons of Homebrew and Debian have: it runs, fails or is
missing as if this one were not there. Only folders after ours are searched, so that two such files do not loop.
"""

# ruff: noqa: PTH120, SIM105, UP036
import os
import sys

if sys.version_info >= (3, 9):
    try:
        __import__("_mpstui_boot")
    except Exception:  # noqa: BLE001, S110 - half an installation: the program that we are guests of must not notice
        pass
_kept = sys.modules.pop("sitecustomize", None)  # Python 2 empties a module that nobody refers to
_here = os.path.dirname(__file__)
_before = sys.path[: sys.path.index(_here)] if _here in sys.path else []
sys.path[: len(_before) + (_here in sys.path)] = []
try:
    __import__("sitecustomize")
except ImportError:
    if __name__ == "sitecustomize":  # otherwise another one before ours has loaded us itself
        raise
finally:
    sys.path[:0] = _before
if __name__ != "sitecustomize" and _kept is not None:
    sys.modules["sitecustomize"] = _kept
