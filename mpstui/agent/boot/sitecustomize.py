"""Found by the start of every Python when this folder is on PYTHONPATH: loads the agent's boot where it can run.

Any Python may come by, from 2.7 on: this file is written so that each can read it. One that is too old for the agent
notices nothing, and a ``sitecustomize`` of its own runs as ever.
"""

# ruff: noqa: PTH100, PTH120, UP036
import os
import sys

if sys.version_info >= (3, 9):
    __import__("_mpstui_boot")
else:
    _kept = sys.modules.pop("sitecustomize", None)  # Python 2 empties a module that nobody holds
    _folders = [os.path.abspath(_entry or ".") for _entry in sys.path]
    _here = os.path.dirname(os.path.abspath(__file__))
    _ahead = sys.path[: _folders.index(_here) + 1] if _here in _folders else []
    sys.path[: len(_ahead)] = []
    try:
        __import__("sitecustomize")
    except ImportError:
        sys.modules["sitecustomize"] = _kept
    finally:
        sys.path[:0] = _ahead
