"""Imported by ``sitecustomize.py`` beside it: prepares the agent in a program that does not know mpstui.

``MPSTUI_AGENT=1`` switches it on; without it, and whenever anything goes wrong, the program runs as if this file were
not there. Nothing happens before the program itself imports torch. The agent's modules are loaded from their own folder
under a private name, so that nothing else of mpstui can be imported by accident. Python 3.9+, standard library only.
"""

# ruff: noqa: PTH100, PTH118, PTH120, PTH123
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
    "torch._dynamo.callback",  # which knows when something is compiled
    "torch.utils.tensorboard.writer",
    "tensorboardX.writer",
    "safetensors",  # its serialize_file is behind every save_file
    "accelerate.accelerator",
    "transformers.trainer_callback",
    "keras.src.callbacks.callback_list",
    "keras.src.models.model",
    "fastai.learner",
    "fastai.callback.schedule",
    "lightning.fabric.fabric",
    "lightning_fabric.fabric",
    "gym.core",
    "gymnasium.core",
    "stable_baselines3.common.base_class",
    "stable_baselines3.common.logger",
    "ultralytics.engine.trainer",
    *(
        f"{package}.trainer.{module}"
        for package in ("lightning.pytorch", "pytorch_lightning")
        for module in ("call", "trainer", "connectors.logger_connector.logger_connector")
    ),
}
"""Modules that the agent hooks into once the program has imported them."""
_HERE = os.path.dirname(os.path.abspath(__file__))


class _Imports:
    """A finder that lets modules load as usual and then hands them to the agent.

    It waits until a module is really loaded: many libraries first only ask whether one exists.
    """

    def __init__(self) -> None:
        self._finding: set[str] = set()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Ask the other finders for a module, and add a call after its execution."""
        if name not in _WATCHED or name in self._finding:  # another finder like ours asks all finders again
            return None
        self._finding.add(name)
        try:
            others = [finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec")]
            found = (finder.find_spec(name, path, target) for finder in others)
            spec = next((spec for spec in found if spec is not None), None)
        finally:
            self._finding.discard(name)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            _attempt(lambda: self._act_behind(spec.loader))
        return spec

    def _act_behind(self, loader: Any) -> None:
        execute = loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            _attempt(lambda: _imported(module))

        # Tracebacks of imports omit importlib's own frames, but only if no other frame is between them.
        exec_module.__code__ = exec_module.__code__.replace(co_filename="<frozen importlib._bootstrap_external>")
        loader.exec_module = exec_module


_told_later: list[Any] = []
"""Modules that wait for the agent, which is loaded together with torch."""


def _imported(module: Any) -> None:
    if module.__name__ not in _WATCHED:
        return
    _WATCHED.discard(module.__name__)
    if module.__name__ != "torch":
        _told_later.append(module)
    elif hasattr(module, "Tensor") and "torch.optim.optimizer" in sys.modules:  # not another module of that name
        _load_agent().install(module, os.environ)
    hooks = sys.modules.get(f"{_PRIVATE}.agent.hooks")
    while _told_later and hooks is not None:
        hooks.imported(_told_later.pop())


def _load_agent() -> Any:
    """Return the module ``agent.hooks``, as part of a package that holds ``wire`` and ``agent`` and nothing else."""
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


def _attempt(action: Callable[[], Any]) -> None:
    try:
        action()
    except Exception as error:  # noqa: BLE001 - the program we are guests of must not notice
        _tell(f"the agent is off, the program goes on ({type(error).__name__}: {error})")


def _tell(text: str) -> None:
    """Write an event of the run: the program's output stays its own."""
    import json
    import time
    from contextlib import suppress

    number = os.environ.get("MPSTUI_ATTEMPT", "1")
    line = {"time": time.time(), "attempt": int(number) if number.isdigit() else 1, "event": "note", "text": text}
    path = os.path.join(os.environ.get("MPSTUI_RUN_DIR") or os.devnull, "events.jsonl")
    with suppress(OSError, ValueError), open(path, "a", encoding="utf-8") as file:  # there is nowhere else to say it
        file.write(json.dumps(line) + "\n")


def _arm() -> None:
    if os.environ.get("MPSTUI_AGENT_DEVICE") == "cpu":
        # Read by Lightning (2.3+), accelerate and the CUDA driver; torch itself is told when it has loaded.
        os.environ.update(DISABLE_MPS="1", ACCELERATE_USE_CPU="1", CUDA_VISIBLE_DEVICES="")
    if "torch" not in sys.modules:
        sys.meta_path.insert(0, _Imports())


if os.environ.get("MPSTUI_AGENT") == "1":
    _attempt(_arm)
