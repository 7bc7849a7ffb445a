"""Weights of matrix products in a sharded training of reduced precision: each rank has rows, each call the whole casts.

Autocast would cast these weights wherever they are used, and keep the casts until the backward pass. So the ranks
exchange casts: half the bytes, all of them before the model is called, and not again for the backward pass.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import nn

from .network import weights_of_products

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh

_MOST_NUMBERS = 1 << 25
"""Weights exchanged together. For a moment, the gradient of each takes 6 bytes on every rank."""
_ALIGNED = 32
"""Each weight's rows start at a multiple of so many numbers: kernels read aligned memory in wider words."""


class Products:
    """Divides the weights of a model's products over the ranks, and gives it the whole casts whenever it is called."""

    def __init__(self, model: nn.Module, dtype: torch.dtype) -> None:
        """Takes the weights out of the model, where FSDP must not find them, until :meth:`divide` puts rows in."""
        self._dtype = dtype
        self._places: dict[nn.Parameter, list[tuple[nn.Module, str]]] = {}
        """Each weight, and under which names modules know it: some share one."""
        for path, weight in list(weights_of_products(model)):
            owner, _, name = path.rpartition(".")
            self._places.setdefault(weight, []).append((model.get_submodule(owner), name))
        for module, name in self._all_places():
            delattr(module, name)

    def divide(self, mesh: DeviceMesh) -> None:
        """Put this rank's rows of each weight in its place: a DTensor, as FSDP's, but laid out like the whole, so
        that convolutions stay channels-last."""
        from torch.distributed.tensor import DTensor, Shard

        divided = {}
        for whole, places in self._places.items():
            parts = whole.detach().chunk(mesh.size())  # as FSDP divides
            mine = parts[mesh.get_local_rank()] if mesh.get_local_rank() < len(parts) else parts[0][:0]
            rows = nn.Parameter(
                DTensor.from_local(
                    mine.clone(), mesh, [Shard(0)], run_check=False, shape=whole.shape, stride=whole.stride()
                )
            )
            for module, name in places:
                module.register_parameter(name, rows)
            divided[rows] = places
        self._places = divided

    def serve(self, model: nn.Module, rows: Mapping[nn.Parameter, nn.Parameter]) -> set[nn.Parameter]:
        """Exchange from now on, with the gradients of the casts going to ``rows``: this rank's, by weight.

        Returns the weights.
        """
        exchanges = [_Exchange(weights, self._dtype) for weights in _together(self._places)]

        def begin(module: nn.Module, inputs: Any) -> None:
            for exchange in exchanges:
                held = (rows[weight] for weight in exchange.weights)
                casts = _Whole.apply(exchange, *held)  # type: ignore[no-untyped-call]
                for weight, cast in zip(exchange.weights, casts, strict=True):
                    for owner, name in self._places[weight]:
                        vars(owner)[name] = cast  # an attribute precedes the parameter of its name

        def end(module: nn.Module, inputs: Any, output: Any) -> None:
            for owner, name in self._all_places():
                vars(owner).pop(name, None)

        model.register_forward_pre_hook(begin)
        model.register_forward_hook(end, always_call=True)
        return set(self._places)

    def _all_places(self) -> Iterator[tuple[nn.Module, str]]:
        return itertools.chain.from_iterable(self._places.values())


class _Exchange:
    """Some weights, and where the rows of each lie in what a rank sends: at the same place on all ranks."""

    def __init__(self, weights: Sequence[nn.Parameter], dtype: torch.dtype) -> None:
        self.weights = weights
        self._dtype = dtype
        self._ranks, self._rank = dist.get_world_size(), dist.get_rank()
        self._laid_out = [(tuple(weight.shape), weight.stride()) for weight in weights]
        self._rows = [-(-len(weight) // self._ranks) for weight in weights]
        """Room for so many on each rank; the last ranks may have fewer."""
        sizes = [count * math.prod(shape[1:]) for count, (shape, _) in zip(self._rows, self._laid_out, strict=True)]
        aligned = (-(-size // _ALIGNED) * _ALIGNED for size in sizes)
        *self._starts, self._size = itertools.accumulate(aligned, initial=0)

    def whole(self, rows: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The casts of all rows, from those of this rank."""
        mine = rows[0].new_empty(self._size, dtype=self._dtype)
        torch._foreach_copy_(self._parts(mine, self._rank), list(rows))
        gathered = mine.new_empty(self._ranks * self._size)
        dist.all_gather_into_tensor(gathered, mine)
        casts = [mine.new_empty_strided(shape, stride) for shape, stride in self._laid_out]
        for rank, sent in enumerate(gathered.view(self._ranks, self._size)):
            received = [_rows_of(rank, cast, rows) for cast, rows in zip(casts, self._rows, strict=True)]
            torch._foreach_copy_(received, self._parts(sent, rank))
        return casts

    def reduced(self, gradients: Sequence[torch.Tensor | None]) -> list[torch.Tensor]:
        """This rank's rows of the mean over all ranks of the casts' gradients, in float32; None counts as 0."""
        some = next(gradient for gradient in gradients if gradient is not None)
        every = some.new_empty(self._ranks * self._size, dtype=torch.float32)
        for rank, sent in enumerate(every.view(self._ranks, self._size)):
            pairs = list(zip(self._parts(sent, rank), gradients, self._rows, strict=True))
            if missing := [part for part, gradient, _ in pairs if gradient is None]:
                torch._foreach_zero_(missing)
            there = [(part, _rows_of(rank, whole, rows)) for part, whole, rows in pairs if whole is not None]
            torch._foreach_copy_([part for part, _ in there], [gradient for _, gradient in there])
        mine = every.new_empty(self._size)
        if every.is_cuda:
            dist.reduce_scatter_tensor(mine, every, op=dist.ReduceOp.AVG)
        else:  # gloo cannot divide
            dist.reduce_scatter_tensor(mine, every)
            mine.div_(self._ranks)
        return self._parts(mine, self._rank)

    def _parts(self, memory: torch.Tensor, rank: int) -> list[torch.Tensor]:
        """The rows of a rank, weight by weight, in the memory that it sends."""
        return [
            memory.as_strided((_count(shape[0], rows, rank), *shape[1:]), stride, memory.storage_offset() + start)
            for (shape, stride), rows, start in zip(self._laid_out, self._rows, self._starts, strict=True)
        ]


class _Whole(torch.autograd.Function):
    """The casts of all rows; the gradients of this rank's."""

    @staticmethod
    def forward(ctx: Any, exchange: _Exchange, *rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.set_materialize_grads(False)
        ctx.exchange = exchange
        return tuple(exchange.whole(rows))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        return None, *ctx.exchange.reduced(gradients)


def _rows_of(rank: int, whole: torch.Tensor, rows: int) -> torch.Tensor:
    """A rank's part of a whole tensor, of which each rank has room for ``rows``."""
    return whole[rank * rows :][:rows]


def _count(whole: int, rows: int, rank: int) -> int:
    """How many rows of ``whole`` ones that is."""
    return max(0, min(rows, whole - rank * rows))


def _together(weights: Iterable[nn.Parameter]) -> Iterator[list[nn.Parameter]]:
    """Weights in groups of at most ``_MOST_NUMBERS``, or of one that is larger."""
    group: list[nn.Parameter] = []
    for weight in weights:
        if group and sum(one.numel() for one in [*group, weight]) > _MOST_NUMBERS:
            yield group
            group = []
        group.append(weight)
    if group:
        yield group
