"""Optimizer steps in CUDA graphs: capturing a graph computes nothing, each replay makes its steps."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any


class CapturedSteps:
    """Remembers which optimizers' steps are in which graph."""

    def __init__(self, stepped: Callable[[Any], None]) -> None:
        """``stepped`` is called for each step that a replay has made."""
        self._stepped = stepped
        self.is_capturing = False
        """Whether a graph is being captured: reading a number back now would end the program."""
        self._captured: list[weakref.ref[Any]] = []
        self._replayed: weakref.WeakKeyDictionary[Any, list[weakref.ref[Any]]] = weakref.WeakKeyDictionary()

    def after_begin(self, result: Any, graph: Any, *args: Any, **kwargs: Any) -> None:
        """After ``CUDAGraph.capture_begin``."""
        self.is_capturing, self._captured = True, []

    def take(self, optimizer: Any) -> None:
        """Note that this optimizer's step is part of the graph being captured."""
        self._captured.append(weakref.ref(optimizer))

    def before_end(self, graph: Any) -> None:
        """Before ``CUDAGraph.capture_end``, which fails if anything in the graph did."""
        self.is_capturing = False

    def after_end(self, result: Any, graph: Any) -> None:
        """After ``CUDAGraph.capture_end``."""
        if self._captured:
            self._replayed[graph], self._captured = self._captured, []

    def after_replay(self, result: Any, graph: Any) -> None:
        """After ``CUDAGraph.replay``."""
        for optimizer in (ref() for ref in self._replayed.get(graph, ())):
            if optimizer is not None:
                self._stepped(optimizer)
