"""mpstui: launch, watch and rescue PyTorch trainings from the terminal."""

from __future__ import annotations

__version__ = "0.1.0"
_LAZY = {"report": ".reporting", **dict.fromkeys(("runs", "run", "launch", "Run", "Curve", "Image", "Text"), ".api")}
"""What a program imports from here, and the module that has it: `import mpstui` alone stays light.

Their types are told in ``__init__.pyi``."""


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(__import__(__name__ + _LAZY[name], fromlist=[name]), name)  # importlib would have to be imported
