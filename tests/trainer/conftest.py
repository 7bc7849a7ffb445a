"""What several tests of the trainer need."""

from __future__ import annotations

import importlib
import signal
import sys
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

Interpreted = Callable[[str], ModuleType]


@pytest.fixture(autouse=True)
def _signals_stay() -> Iterator[None]:
    """``main`` takes over two signals; the test runner wants them back."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> Interpreted:
    """Loads a module of CUDA kernels for Triton's interpreter, which runs them on the CPU."""
    monkeypatch.setenv("TRITON_INTERPRET", "1")  # before the import: functions of Triton's own are read then
    pytest.importorskip("triton", reason="comes with torch for CUDA")

    def load(name: str) -> ModuleType:
        monkeypatch.delitem(sys.modules, name, raising=False)
        return importlib.import_module(name)

    return load
