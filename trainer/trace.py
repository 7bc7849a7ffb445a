"""The result of every operation in a training step, in order and by layer: evidence when two devices disagree."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode, resolve_name

_MOST_VALUES = 4096
"""Evenly spread values kept of each result; its norm is taken over all of its values."""
_SMALLEST_SHARE = 1e-3
"""A tensor much smaller than the largest of its kind is measured against this share of it, not against itself: the
gradient of a bias before a normalisation is zero except for rounding."""
_CANCELLING = frozenset({"mean", "sum", "cumsum", "add", "add_", "sub", "sub_", "__add__", "__sub__", "__rsub__"})
"""Operations whose result may be nearly zero though their inputs are not, such as the mean of normalised values. Only
rounding is left then, so the result is measured against the inputs."""
OUTSIDE = "(outside the model)"


@dataclass(frozen=True)
class Sample:
    """A tensor in brief, as float64 on the CPU."""

    values: torch.Tensor
    norm: float
    """2-norm of the finite values."""
    nonfinite: int
    count: int

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Sample:
        """Read a tensor back and keep what is needed to compare it."""
        real = torch.view_as_real(tensor.detach()) if tensor.is_complex() else tensor.detach()
        flat = real.cpu().flatten().double()
        finite = torch.isfinite(flat)
        known = flat if bool(finite.all()) else torch.where(finite, flat, torch.zeros_like(flat))
        values = known[:: -(-flat.numel() // _MOST_VALUES)].clone() if flat.numel() else known
        return cls(values, float(torch.linalg.vector_norm(known)), int((~finite).sum()), flat.numel())

    def apart(self, reference: Sample, least: float = 0.0) -> float:
        """The distance from ``reference``, as a share of its norm or of ``least``, whichever is larger.

        Infinity when their shapes differ, or only one of them holds NaN or infinity.
        """
        if self.count != reference.count or self.nonfinite != reference.nonfinite:
            return float("inf")
        spread = float(torch.linalg.vector_norm(self.values - reference.values))
        size = float(torch.linalg.vector_norm(reference.values))
        kept = (len(self.values) / self.count) ** 0.5 if self.count else 1.0
        share = spread / max(size, least * kept, 1e-30) if spread else 0.0
        whole = abs(self.norm - reference.norm)
        return max(share, whole / max(reference.norm, least, 1e-30) if whole else 0.0)

    def plain(self) -> dict[str, Any]:
        """Plain containers for a file."""
        return {"values": self.values, "norm": self.norm, "nonfinite": self.nonfinite, "count": self.count}


@dataclass(frozen=True)
class Entry:
    """The result of one operation."""

    layer: str
    """The module that called it, as ``layer3.0.conv1 (Conv2d)``; operations of the loss are outside the model."""
    operation: str
    """As a person writes it: ``torch.nn.functional.conv2d``."""
    turn: int
    """Which call of this operation in this layer, from 0."""
    result: Sample
    least: float = 0.0
    """A result with a smaller norm is measured against this one."""

    @property
    def kind(self) -> tuple[str, int]:
        """What identifies the same operation on another device."""
        return self.operation, self.result.count

    def apart(self, reference: Entry) -> float:
        """The distance from the same operation's result on another device; see :meth:`Sample.apart`."""
        return self.result.apart(reference.result, reference.least)


class OperationTrace(TorchFunctionMode):
    """Records every torch function of the forward pass and the loss that returns a tensor, on any device.

    Nothing is recorded from the backward pass until the model is called again: clipping and the optimizer differ
    between devices by design, and the backward pass is judged by its gradients.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.entries: list[Entry] = []
        self._names = {
            id(module): f"{name} ({type(module).__name__})" for name, module in model.named_modules() if name
        }
        self._layers: list[str] = []
        self._paused = False
        self._turns: Counter[tuple[str, str]] = Counter()

    @contextmanager
    def recording(self) -> Iterator[OperationTrace]:
        """Record inside this context."""
        with ExitStack() as stack:
            stack.enter_context(_removed(register_module_forward_pre_hook(self._enter)))
            stack.enter_context(_removed(register_module_forward_hook(self._leave, always_call=True)))
            stack.enter_context(self)
            yield self

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run one torch function and keep its result."""
        name = resolve_name(func) or getattr(func, "__name__", str(func))
        share = _SMALLEST_SHARE * _rms(args) if name.rpartition(".")[2] in _CANCELLING else 0.0
        result = func(*args, **(kwargs or {}))
        self._paused = self._paused or name == "torch.Tensor.backward"
        if not self._paused and not name.endswith("__get__"):
            for tensor in _tensors(args[0] if result is None and args else result):
                self._record(name, tensor, share * tensor.numel() ** 0.5)
        return result

    def _record(self, name: str, tensor: torch.Tensor, least: float) -> None:
        layer = self._layers[-1] if self._layers else OUTSIDE
        turn = self._turns[layer, name]
        self._turns[layer, name] += 1
        self.entries.append(Entry(layer, name, turn, Sample.of(tensor), least))

    def _enter(self, module: nn.Module, inputs: Any) -> None:
        self._paused = False
        known = self._names.get(id(module))
        self._layers.append(known or (self._layers[-1] if self._layers else type(module).__name__))

    def _leave(self, module: nn.Module, inputs: Any, output: Any) -> None:
        if self._layers:
            self._layers.pop()


def differences(mine: Mapping[str, Sample], reference: Mapping[str, Sample]) -> list[tuple[str, float]]:
    """The distances between tensors of the same names, the largest first."""
    least = _SMALLEST_SHARE * max((sample.norm for sample in reference.values()), default=0.0)
    found = [(name, sample.apart(reference[name], least)) for name, sample in mine.items() if name in reference]
    return sorted(found, key=lambda pair: -pair[1])


def matched(mine: Sequence[Entry], reference: Sequence[Entry]) -> Iterator[tuple[Entry, Entry]]:
    """Pairs of the operations that both traces have, in order.

    A layer may use other operations, or pieces of another size, such as a scan in longer chunks. Then its first and its
    last operations are compared as far as they match; those in between are not.
    """
    theirs = _by_layer(reference)
    partners: dict[int, Entry] = {}
    for layer, entries in _by_layer(mine).items():
        others = theirs.get(layer, [])
        begin = _alike(entries, others)
        end = _alike(entries[begin:][::-1], others[begin:][::-1])
        pairs = [*zip(entries[:begin], others, strict=False), *zip(entries[::-1][:end], others[::-1], strict=False)]
        partners.update((id(entry), other) for entry, other in pairs)
    return ((entry, partners[id(entry)]) for entry in mine if id(entry) in partners)


def _by_layer(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    layers: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        layers[entry.layer].append(entry)
    return layers


def _alike(entries: Sequence[Entry], others: Sequence[Entry]) -> int:
    """How many operations two sequences have in common before they differ."""
    pairs = zip(entries, others, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0].kind == pair[1].kind, pairs))


@contextmanager
def _removed(handle: Any) -> Iterator[None]:
    """Remove a hook at the end."""
    try:
        yield
    finally:
        handle.remove()


def _rms(inputs: Iterable[Any]) -> float:
    """The largest root mean square among some tensors, 0 without any."""
    samples = [Sample.of(tensor) for value in inputs for tensor in _tensors(value)]
    return max((sample.norm / sample.count**0.5 for sample in samples if sample.count), default=0.0)


def _tensors(result: Any) -> Iterator[torch.Tensor]:
    if isinstance(result, torch.Tensor):
        if not result.is_sparse:
            yield result
    elif isinstance(result, (list, tuple)):
        for item in result:
            yield from _tensors(item)
