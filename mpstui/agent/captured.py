"""Optimizer steps in CUDA graphs: capturing one computes nothing, each replay makes the steps."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any


class CapturedSteps:
    """Remembers which optimizers' steps are in which graph."""

    def __init__(self, torch: Any, stepped: Callable[[Any], None]) -> None:
        """``stepped`` is called for each step that a replay has made."""
        self._cuda = torch.cuda
        self._stepped = stepped
        self._captured: list[weakref.ref[Any]] = []
        self._replayed: weakref.WeakKeyDictionary[Any, list[weakref.ref[Any]]] = weakref.WeakKeyDictionary()

    def is_capturing(self) -> bool:
        """Whether work is being recorded into a graph: reading a number back now would end the program."""
        return bool(self._cuda.is_initialized() and self._cuda.is_current_stream_capturing())

    def take(self, optimizer: Any) -> None:
        """Note that this optimizer's step is part of the graph being captured."""
        self._captured.append(weakref.ref(optimizer))

    def after_capture(self, result: Any, graph: Any) -> None:
        """After ``CUDAGraph.capture_end``."""
        if self._captured:
            self._replayed[graph], self._captured = self._captured, []

    def after_replay(self, result: Any, graph: Any) -> None:
        """After ``CUDAGraph.replay``."""
        for optimizer in (ref() for ref in self._replayed.get(graph, ())):
            if optimizer is not None:
                self._stepped(optimizer)
