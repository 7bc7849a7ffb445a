"""Several processes, one training: started by torchrun, which sets RANK, WORLD_SIZE and LOCAL_RANK."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from .device import Device


@dataclass(frozen=True)
class Ranks:
    """This process among the processes of the training."""

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Ranks:
        """What torchrun told us; alone when it told nothing."""
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
        return cls(*(int(environ.get(name, default)) for name, default in zip(names, ("0", "1", "0"), strict=True)))

    @property
    def leads(self) -> bool:
        """Whether this process speaks, saves and validates for all."""
        return self.rank == 0

    def share(self, samples: torch.Tensor) -> torch.Tensor:
        """This rank's part of a step's samples; a rank left without one repeats the first, see :meth:`weight`."""
        mine = samples[self.rank :: self.world_size]
        return mine if len(mine) else samples[:1]

    def weight(self, total: int) -> float:
        """Loss factor of one local sample: gradients are averaged over ranks, the loss is a mean over ``total``."""
        return 0.0 if self.rank >= total else self.world_size / total


class Group:
    """The process group; does nothing when this process is alone."""

    def __init__(self, ranks: Ranks, device: Device) -> None:
        self.ranks = ranks
        self._control: Any = None
        if ranks.world_size > 1:
            dist.init_process_group(device.distributed_backend())
            # Flags travel over the CPU, so that agreeing never waits for a GPU.
            self._control = dist.new_group(backend="gloo")

    def wrap(self, model: nn.Module) -> nn.Module:
        """The model whose gradients are averaged over the ranks."""
        if self.ranks.world_size == 1:
            return model
        return nn.parallel.DistributedDataParallel(model)

    def any(self, flag: bool) -> bool:
        """Whether the flag is set on any rank; every rank must ask."""
        if self._control is None:
            return flag
        votes = torch.tensor([int(flag)])
        dist.all_reduce(votes, group=self._control)
        return bool(votes.item())

    def wait(self) -> None:
        """Wait for the other ranks."""
        self.any(False)

    def close(self) -> None:
        """Leave the group."""
        if self._control is not None:
            with contextlib.suppress(RuntimeError):  # another rank may be gone already
                dist.destroy_process_group()


def unsynchronised(network: nn.Module) -> contextlib.AbstractContextManager[Any]:
    """Gradients of this backward stay local: for every micro-batch of a step but the last."""
    inner = getattr(network, "inner", network)
    if isinstance(inner, nn.parallel.DistributedDataParallel):
        return inner.no_sync()
    return contextlib.nullcontext()
