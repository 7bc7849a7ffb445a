"""Loaded by Python's start when this folder is on PYTHONPATH: stands in for parts of the torch that is imported then.

For the MPS device where ``MPSTUI_STANDIN`` is set, if only to nothing. For the compiler, unless
``MPSTUI_STANDIN_COMPILER`` is ``real``: an optimizer asks for it at each step, so that even a program that compiles
nothing loads it, which takes longer than torch itself; and a third of torch's own start is how it finds the shape of
what operations give, without doing them. And ``MPSTUI_STANDIN_PAUSE`` is how many seconds each step of an
optimizer takes longer: a training that is only there to be watched leaves the processor to its watcher.
"""

from __future__ import annotations

import gc
import importlib.abc
import importlib.util
import os
import sys
import time
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

_HERE = Path(__file__).resolve().parent
_SHAPES = "torch._meta_registrations"


class _NoCompiler(ModuleType):
    """What ``torch._dynamo`` is asked for by programs of one process that compile nothing."""

    graph_break = staticmethod(lambda: None)
    disable = staticmethod(lambda function, *_, **__: function)


class _AfterTorch(importlib.abc.MetaPathFinder):
    """Lets torch load as always, but for looks for garbage, then installs the stand-ins."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("torch")
        if spec is not None and spec.loader is not None:
            _run_after(spec.loader)
        return spec


def _run_after(loader: importlib.abc.Loader) -> None:
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        looked = gc.isenabled()
        gc.disable()
        if os.environ.get("MPSTUI_STANDIN_COMPILER") == "real":
            execute(module)
        else:
            sys.modules |= {"torch._dynamo": _NoCompiler("torch._dynamo"), _SHAPES: ModuleType(_SHAPES)}
            execute(module)
            importlib.import_module("torch._prims.rng_prims")  # torch.Generator needs it, and the shapes load it
        gc.freeze()  # what torch keeps is never looked through again, for garbage or for tensors that are counted
        if looked:
            gc.enable()
        if "MPSTUI_STANDIN" in os.environ:
            _load(_HERE / "mps.py", "_mps_standin").install()
        if pause := float(os.environ.get("MPSTUI_STANDIN_PAUSE", 0)):
            sys.modules["torch.optim.optimizer"].register_optimizer_step_post_hook(lambda *_: time.sleep(pause))

    loader.exec_module = exec_module  # type: ignore[method-assign]


def _load(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _load_shadowed() -> None:
    """Another folder on the path may have a sitecustomize too."""
    folders = [Path(entry or ".").resolve() for entry in sys.path]
    behind = sys.path[folders.index(_HERE) + 1 :] if _HERE in folders else []
    spec = PathFinder.find_spec("sitecustomize", behind)
    if spec is not None and spec.origin is not None:
        _load(Path(spec.origin), "_sitecustomize_behind_standin")


sys.meta_path.insert(0, _AfterTorch())
_load_shadowed()
