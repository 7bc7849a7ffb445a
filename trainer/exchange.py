"""Sharded training in reduced precision: each rank holds rows of every weight, each call of the model gets whole ones.

Autocast would cast the weights of matrix products wherever they are used, and keep the casts until the backward pass.
So the ranks exchange the casts: half the bytes, all of them before the model is called, and not again for the backward
pass. The other weights, such as those of norms, travel along uncast: exchanging them separately would cost more than
their bytes do.
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
"""The most elements exchanged together. For a moment, the gradient of each takes 6 bytes on every rank."""
_ALIGNED_BYTES = 64
"""Each weight's rows start at a multiple of this many bytes: kernels read aligned memory in wider words."""

_Place = tuple[nn.Module, str]
"""A module, and its name for a weight."""


class Exchange:
    """Divides the weights of a model over the ranks, and gives it whole ones whenever it is called."""

    def __init__(self, model: nn.Module, dtype: torch.dtype, mesh: DeviceMesh) -> None:
        """Replace each weight by this rank's rows: a DTensor, as in FSDP, but in the memory layout of the whole, so
        that convolutions stay channels-last."""
        from torch.distributed.tensor import DTensor, Shard

        self._model = model
        places: dict[nn.Parameter, set[_Place]] = {}
        for path, weight in model.named_parameters(remove_duplicate=False):
            places.setdefault(weight, set()).add(_place(model, path))
        of_products = {_place(model, path) for path, _ in weights_of_products(model)}
        self._places: dict[nn.Parameter, set[_Place]] = {}
        """The rows of each weight, and where modules know them: some share one."""
        self._types: dict[nn.Parameter, torch.dtype] = {}
        """The dtype in which each travels. A weight also used outside products, like a tied embedding, stays exact."""
        for whole, where in places.items():
            parts = whole.detach().chunk(mesh.size())  # as FSDP divides
            mine = parts[mesh.get_local_rank()] if mesh.get_local_rank() < len(parts) else parts[0][:0]
            held = DTensor.from_local(
                mine.clone(), mesh, [Shard(0)], run_check=False, shape=whole.shape, stride=whole.stride()
            )
            rows = nn.Parameter(held, requires_grad=whole.requires_grad)
            for module, name in where:
                module.register_parameter(name, rows)
            self._places[rows] = where
            self._types[rows] = dtype if where <= of_products else whole.dtype

    def begin(self, rows: Mapping[nn.Parameter, torch.Tensor]) -> None:
        """Exchange from now on whenever the model is called.

        Args:
            rows: this rank's rows of each weight as a plain tensor, which also gets the gradient.
        """
        groups = [_Together({weight: self._types[weight] for weight in some}) for some in _grouped(self._types)]

        def put(module: nn.Module, inputs: Any) -> None:
            for group in groups:
                wholes = _Whole.apply(group, *(rows[weight] for weight in group.weights))  # type: ignore[no-untyped-call]
                for weight, whole in zip(group.weights, wholes, strict=True):
                    for owner, name in self._places[weight]:
                        vars(owner)[name] = whole  # an attribute shadows the parameter of that name

        def remove(module: nn.Module, inputs: Any, output: Any) -> None:
            for owner, name in itertools.chain.from_iterable(self._places.values()):
                vars(owner).pop(name, None)

        self._model.register_forward_pre_hook(put)
        self._model.register_forward_hook(remove, always_call=True)


class _Together:
    """Weights that are exchanged together, each in its type; gradients in float32."""

    def __init__(self, types: Mapping[nn.Parameter, torch.dtype]) -> None:
        self.weights = list(types)
        self._ranks, self._rank = dist.get_world_size(), dist.get_rank()
        self._types = list(types.values())
        self._sent = _Packed(self.weights, self._types, self._ranks)
        self._gradients = _Packed(self.weights, [torch.float32] * len(types), self._ranks)

    def whole(self, rows: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Whole weights, from the rows of this rank."""
        mine = rows[0].new_empty(self._sent.size_bytes, dtype=torch.uint8)
        _copy(zip(self._sent.rows(mine, self._rank), rows, strict=True))
        gathered = mine.new_empty(self._ranks * len(mine))
        dist.all_gather_into_tensor(gathered, mine)
        wholes = [
            mine.new_empty_strided(weight.shape, weight.stride(), dtype=dtype)
            for weight, dtype in zip(self.weights, self._types, strict=True)
        ]
        _copy(
            (self._sent.rows_of(whole, number, rank), received)
            for rank, memory in enumerate(gathered.view(self._ranks, -1))
            for number, (whole, received) in enumerate(zip(wholes, self._sent.rows(memory, rank), strict=True))
        )
        return wholes

    def reduced(self, gradients: Sequence[torch.Tensor | None]) -> list[torch.Tensor]:
        """This rank's rows of the mean over all ranks of whole weights' gradients, in float32; None counts as 0."""
        some = next(gradient for gradient in gradients if gradient is not None)
        size = self._gradients.size_bytes // torch.float32.itemsize
        every = some.new_empty(self._ranks * size, dtype=torch.float32)
        there, missing = [], []
        for rank, memory in enumerate(every.view(self._ranks, size)):
            for number, (sent, gradient) in enumerate(zip(self._gradients.rows(memory, rank), gradients, strict=True)):
                if gradient is None:
                    missing.append(sent)
                else:
                    there.append((sent, self._gradients.rows_of(gradient, number, rank)))
        if missing:
            torch._foreach_zero_(missing)
        _copy(there)
        mine = every.new_empty(size)
        if every.is_cuda:
            dist.reduce_scatter_tensor(mine, every, op=dist.ReduceOp.AVG)
        else:  # gloo cannot divide
            dist.reduce_scatter_tensor(mine, every)
            mine.div_(self._ranks)
        return self._gradients.rows(mine, self._rank)


class _Packed:
    """Where the rows of some weights lie in a rank's part of an exchange: at the same place on all ranks."""

    def __init__(self, weights: Sequence[nn.Parameter], types: Sequence[torch.dtype], ranks: int) -> None:
        self._laid_out = [(tuple(weight.shape), weight.stride()) for weight in weights]
        self._types = types
        self._room = [-(-len(weight) // ranks) for weight in weights]
        """Rows reserved on each rank; the last ranks may have fewer."""
        sizes = (
            room * math.prod(shape[1:]) * dtype.itemsize
            for room, (shape, _), dtype in zip(self._room, self._laid_out, types, strict=True)
        )
        aligned = (-(-size // _ALIGNED_BYTES) * _ALIGNED_BYTES for size in sizes)
        *self._starts, self.size_bytes = itertools.accumulate(aligned, initial=0)

    def rows(self, memory: torch.Tensor, rank: int) -> list[torch.Tensor]:
        """A rank's rows, weight by weight, in its part of ``size_bytes``."""
        typed = {dtype: memory.view(dtype) for dtype in set(self._types)}
        return [
            typed[dtype].as_strided(
                (max(0, min(room, shape[0] - rank * room)), *shape[1:]),
                stride,
                typed[dtype].storage_offset() + start // dtype.itemsize,
            )
            for (shape, stride), room, dtype, start in zip(
                self._laid_out, self._room, self._types, self._starts, strict=True
            )
        ]

    def rows_of(self, whole: torch.Tensor, number: int, rank: int) -> torch.Tensor:
        """A rank's rows of a whole weight, which is given by its number."""
        room = self._room[number]
        return whole[rank * room :][:room]


class _Whole(torch.autograd.Function):
    """Whole weights from this rank's rows; backward, the rows' gradients from those of the whole weights."""

    @staticmethod
    def forward(ctx: Any, group: _Together, *rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.set_materialize_grads(False)
        ctx.group = group
        return tuple(group.whole(rows))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        return None, *ctx.group.reduced(gradients)


def _place(model: nn.Module, path: str) -> _Place:
    owner, _, name = path.rpartition(".")
    return model.get_submodule(owner), name


def _copy(pairs: Iterable[tuple[torch.Tensor, torch.Tensor]]) -> None:
    """Copy the second of each pair into the first. A kernel takes a list of tensors only if all are of one type."""
    by_type: dict[tuple[torch.dtype, torch.dtype], tuple[list[torch.Tensor], list[torch.Tensor]]] = {}
    for into, source in pairs:
        if into.numel():
            written, read = by_type.setdefault((into.dtype, source.dtype), ([], []))
            written.append(into)
            read.append(source)
    for written, read in by_type.values():
        torch._foreach_copy_(written, read)


def _grouped(weights: Iterable[nn.Parameter]) -> Iterator[list[nn.Parameter]]:
    """Weights in groups of at most ``_MOST_NUMBERS`` elements, or of one weight that is larger."""
    group: list[nn.Parameter] = []
    for weight in weights:
        if group and sum(one.numel() for one in [*group, weight]) > _MOST_NUMBERS:
            yield group
            group = []
        group.append(weight)
    if group:
        yield group
