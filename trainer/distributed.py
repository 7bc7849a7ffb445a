"""Several processes that train together, started by torchrun, which sets RANK, WORLD_SIZE and LOCAL_RANK."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import nn

from .device import Device

T = TypeVar("T")
VOTE_SECONDS = 0.25
"""Time between votes of :meth:`Group.any_lately`: voting at every step costs a fast training a tenth of its speed."""
_ALIGNED = 32
"""Each gradient starts at a multiple of this many numbers: kernels read aligned memory in wider words."""
_PATIENCE = datetime.timedelta(days=7)
"""Long enough for one rank to validate or save alone: after torch's default of half an hour the others would abort. If
that rank dies, torchrun ends them."""


@dataclass(frozen=True)
class Ranks:
    """This process among the processes of the training."""

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Ranks:
        """The ranks that torchrun set; a single process if it set nothing."""
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
        return cls(*(int(environ.get(name, default)) for name, default in zip(names, ("0", "1", "0"), strict=True)))

    @property
    def leads(self) -> bool:
        """Whether this process reports, saves and validates for all."""
        return self.rank == 0

    def share(self, samples: torch.Tensor) -> torch.Tensor:
        """This rank's part of a step's samples; a rank left without any repeats the first one, see :meth:`weight`."""
        mine = samples[self.rank :: self.world_size]
        return mine if len(mine) else samples[:1]

    def largest_share(self, total: int) -> int:
        """The most of a step's ``total`` samples on any rank; every rank has that many or one less."""
        return -(-total // self.world_size)

    def weight(self, total: int) -> float:
        """Loss factor of a local sample: gradients are averaged over ranks, the loss is a mean over ``total``."""
        return 0.0 if self.rank >= total else self.world_size / total


class Group:
    """The process group; does nothing in a single process."""

    def __init__(self, ranks: Ranks, device: Device, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.ranks = ranks
        self._control: Any = None
        self._clock = clock
        self._voted = clock()
        self._asked = 0
        self._next_vote = 1
        if ranks.world_size > 1:
            dist.init_process_group(device.distributed_backend())
            # Flags travel over the CPU, so that agreeing never waits for a GPU.
            self._control = dist.new_group(backend="gloo", timeout=_PATIENCE)

    def averaged(self, model: nn.Module, weights: Sequence[torch.Tensor]) -> Averaged | None:
        """Copy the leading rank's weights and buffers to all; return the gradients of these weights, to be averaged.

        Each rank keeps its own running statistics: the leading rank validates and saves with its own, and exchanging
        them at every step would cost more than it is worth. None in a single process.
        """
        if self.ranks.world_size == 1:
            return None
        for tensor in (*model.parameters(), *model.buffers()):
            dist.broadcast(tensor.detach(), 0)
        return Averaged(weights, self.ranks.world_size)

    def told(self, value: T) -> list[T]:
        """Return the values of all ranks, in order; every rank must call this."""
        if self._control is None:
            return [value]
        found: list[Any] = [None] * self.ranks.world_size
        dist.all_gather_object(found, value, group=self._control)
        return found

    def any(self, flag: bool) -> bool:
        """Whether the flag is set on any rank; every rank must call this."""
        if self._control is None:
            return flag
        votes = torch.tensor([int(flag)])
        dist.all_reduce(votes, group=self._control)
        return bool(votes.item())

    def any_lately(self, *flags: bool) -> tuple[bool, ...]:
        """Like :meth:`any` for each flag, but votes only about four times a second. Call it once a step on every rank.

        All ranks count the same calls and agree on the shortest interval that any of them proposes, so they vote at the
        same step. A flag set in between counts at the next vote.
        """
        if self._control is None:
            return flags
        self._asked += 1
        if self._asked < self._next_vote:
            return (False,) * len(flags)
        elapsed = max(1e-6, self._clock() - self._voted)
        affordable = max(1, int(self._asked * VOTE_SECONDS / elapsed))
        ballot = torch.tensor([affordable, *(not flag for flag in flags)])
        dist.all_reduce(ballot, op=dist.ReduceOp.MIN, group=self._control)
        self._next_vote, *against = ballot.tolist()
        self._voted, self._asked = self._clock(), 0
        return tuple(not vote for vote in against)

    def close(self) -> None:
        """Leave the group."""
        if self._control is not None:
            with contextlib.suppress(RuntimeError):  # another rank may be gone already
                dist.destroy_process_group()


class Averaged:
    """Gradients that all ranks exchange at once, after the last backward pass of a step.

    torch's DDP exchanges them in buckets during the backward pass, and copies each into its bucket by its own kernel.
    In a small model that takes longer than it saves, and weights that are cast together get their gradients together.
    """

    def __init__(self, weights: Sequence[torch.Tensor], ranks: int) -> None:
        self._weights = weights
        self._ranks = ranks
        sizes = [-(-weight.numel() // _ALIGNED) * _ALIGNED for weight in weights]
        self._all = weights[0].new_zeros(sum(sizes))
        # Laid out like their weights, which fused optimizers rely on.
        self._parts = [
            self._all.as_strided(weight.size(), weight.stride(), offset)
            for weight, offset in zip(weights, itertools.accumulate(sizes[:-1], initial=0), strict=True)
        ]

    def exchange(self) -> None:
        """Average all gradients; a weight without one counts as 0. The ranks must call this together."""
        pairs = [(part, weight.grad) for part, weight in zip(self._parts, self._weights, strict=True)]
        if missing := [part for part, gradient in pairs if gradient is None]:
            torch._foreach_zero_(missing)
        filled = [(part, gradient) for part, gradient in pairs if gradient is not None]
        torch._foreach_copy_([part for part, _ in filled], [gradient for _, gradient in filled])
        if self._all.is_cuda:
            dist.all_reduce(self._all, op=dist.ReduceOp.AVG)
        else:  # gloo cannot divide
            dist.all_reduce(self._all)
            self._all.div_(self._ranks)
        for weight, part in zip(self._weights, self._parts, strict=True):
            weight.grad = part
