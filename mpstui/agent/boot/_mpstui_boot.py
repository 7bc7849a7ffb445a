"""Imported by ``sitecustomize.py`` beside it: arms the agent in a program that knows nothing of it.

``MPSTUI_AGENT=1`` switches it on; without it, and whenever anything goes wrong, the program runs as if this file were
not there. Nothing happens before the program itself imports torch. The agent's modules are loaded from their own folder
under a private name, so that nothing else of mpstui can be imported by accident. Python 3.9+, standard library only.
"""

# ruff: noqa: PTH100, PTH118, PTH120
# Importing pathlib would cost the start of every Python process 5 ms.
from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # typing is not imported for the same reason
if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from typing import Any

_PRIVATE = "_mpstui_private"
_WATCHED = {
    "torch",
    "safetensors.torch",
    "transformers.trainer_callback",
    "keras.src.callbacks.callback_list",
    *(
        f"{package}.trainer.{module}"
        for package in ("lightning.pytorch", "pytorch_lightning")
        for module in ("call", "connectors.logger_connector.logger_connector")
    ),
}
"""Modules that the agent looks into once the program has imported them."""
_HERE = os.path.dirname(os.path.abspath(__file__))


class _Imports:
    """A finder that lets modules load as always and then hands them to the agent.

    Each is waited for until it was really loaded: many libraries only ask first whether there is one.
    """

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Ask the other finders for it, and add one call behind its execution."""
        if name not in _WATCHED:
            return None
        others = [finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec")]
        found = (finder.find_spec(name, path, target) for finder in others)
        spec = next((spec for spec in found if spec is not None), None)
        if spec is not None and spec.loader is not None:
            self._act_behind(spec.loader)
        return spec

    def _act_behind(self, loader: Any) -> None:
        execute = loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            _WATCHED.discard(module.__name__)
            if module.__name__ == "torch":
                _attempt(lambda: _load_agent().install(module, os.environ))
            else:
                _told_later.append(module)
            while _told_later and "torch" not in _WATCHED:
                _attempt(lambda: sys.modules[f"{_PRIVATE}.agent.hooks"].imported(_told_later.pop()))

        loader.exec_module = exec_module


_told_later: list[Any] = []
"""Modules that the agent was not told of yet: it comes with torch."""


def _load_agent() -> Any:
    """The module ``agent.hooks``, as a part of a package that holds ``wire`` and ``agent`` and nothing else."""
    import importlib
    import types

    root = os.path.dirname(os.path.dirname(_HERE))
    package = types.ModuleType(_PRIVATE)
    package.__path__ = []
    sys.modules[_PRIVATE] = package
    for name in ("wire", "agent"):
        _load(f"{_PRIVATE}.{name}", os.path.join(root, name, "__init__.py"), package=True)
    return importlib.import_module(f"{_PRIVATE}.agent.hooks")


def _load(name: str, path: str, *, package: bool = False) -> None:
    from importlib.util import module_from_spec, spec_from_file_location

    folder = [os.path.dirname(path)] if package else None
    spec = spec_from_file_location(name, path, submodule_search_locations=folder)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {path}")
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


def _load_shadowed() -> None:
    """Run the sitecustomize that this one hides: Homebrew's and Debian's Python have one of their own.

    Only folders behind ours are searched, so that two that do this for each other do not go in circles.
    """
    from importlib.machinery import PathFinder

    folders = [os.path.abspath(entry or ".") for entry in sys.path]
    behind = sys.path[folders.index(_HERE) + 1 :] if _HERE in folders else []
    spec = PathFinder.find_spec("sitecustomize", behind)
    if spec is not None and spec.origin:
        _load("_sitecustomize_behind_mpstui", spec.origin)


def _attempt(action: Callable[[], Any]) -> None:
    try:
        action()
    except Exception as error:  # noqa: BLE001 - the program we are guests of must not notice
        _say(f"mpstui: the agent is off, the program goes on ({type(error).__name__}: {error})")


def _say(text: str) -> None:
    from contextlib import suppress

    with suppress(OSError, ValueError):  # nobody listens
        print(text, file=sys.stderr)


def _arm() -> None:
    if os.environ.get("MPSTUI_AGENT_DEVICE") == "cpu":
        # Read by Lightning (2.3+), accelerate and the CUDA driver; torch itself is told once it is there.
        os.environ.update(DISABLE_MPS="1", ACCELERATE_USE_CPU="1", CUDA_VISIBLE_DEVICES="")
    if "torch" not in sys.modules:
        sys.meta_path.insert(0, _Imports())


if os.environ.get("MPSTUI_AGENT") == "1":
    _attempt(_arm)
_attempt(_load_shadowed)
