"""Which GPUs a queued run is given: the least used of those it may have. Whoever has one holds its kernel lock."""

from __future__ import annotations

from collections.abc import Collection, MutableMapping, Sequence

from ..wire import liveness
from ..wire.queues import QueueFiles
from ..wire.records import GpuRule


def shares(rule: GpuRule, slots: int | None) -> int:
    """How many runs may have one device: one, unless somebody wants more runs at once than there are devices for.

    Args:
        slots: as decided by hand; None: nobody did.
    """
    return max(1, -(-(slots or 0) * rule.takes // len(rule.devices)))


def loads(files: QueueFiles, devices: Collection[str], most: int) -> dict[str, int]:
    """How many runs, up to ``most``, have each of the devices now."""
    return {name: sum(liveness.is_held(files.device(name, share)) for share in range(most)) for name in devices}


def choose(used: MutableMapping[str, int], rule: GpuRule, most: int, before: Collection[str] = ()) -> list[str]:
    """The devices a run would get, in the rule's order, and count them as used; fewer than it takes: it waits.

    Args:
        used: device -> how many have it.
        most: how many may.
        before: what it had last time: taken again where nobody uses it more than another one.
    """
    free = [name for name in rule.devices if used[name] < most]
    chosen = sorted(free, key=lambda name: (used[name], name not in before))[: rule.takes]
    for name in chosen:
        used[name] += 1
    return sorted(chosen, key=rule.devices.index)


def hold(files: QueueFiles, chosen: Sequence[str], most: int) -> list[int] | None:
    """Descriptors of the devices' locks, inheritable; None, and nothing held, when somebody was faster."""
    held: list[int] = []
    for name in chosen:
        paths = (files.device(name, share) for share in range(most))
        free = (path for path in paths if not liveness.is_held(path))
        lock = next((taken for path in free if (taken := liveness.acquire(path, inheritable=True)) is not None), None)
        if lock is None:
            release(held)
            return None
        held.append(lock)
    return held


def release(held: list[int]) -> None:
    """Give them back; a trainer that still lives keeps them through its own descriptors."""
    while held:
        liveness.release(held.pop())
