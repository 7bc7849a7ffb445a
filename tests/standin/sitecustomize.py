"""Loaded by Python's start when this folder is on PYTHONPATH: installs the stand-in once the program imports torch."""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

_HERE = Path(__file__).resolve().parent


class _AfterTorch(importlib.abc.MetaPathFinder):
    """Lets torch load as always, then installs the stand-in."""

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
        execute(module)
        _load(_HERE / "mps.py", "_mps_standin").install()

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
