"""The optimizer steps of a program, from where its own count stands."""

from __future__ import annotations

import weakref
from typing import Any

_NAMES = ("global_step", "step", "iter_num", "iteration", "iter", "steps", "num_steps", "n_iter")
"""What checkpoints call the optimizer steps that are done."""


class Steps:
    """Counts the steps of each optimizer; after a resume it goes on from what the optimizer or a checkpoint tells."""

    def __init__(self) -> None:
        self.before: int | None = 0
        """Steps that were done before this process; None: nobody tells."""
        self.epochs_before: int | None = None
        """Epochs, where a checkpoint and the scheduler in it count the same."""
        self._counts: dict[int, int] = {}
        self._optimizers: list[weakref.ref[Any]] = []
        self._newest: weakref.ref[Any] | None = None
        self._resumed = False
        self.may_go_on = False
        """Something was loaded that a training may go on from."""
        self._told: int | None = None
        self._lr: Any = None

    @property
    def seen(self) -> bool:
        """Whether an optimizer's step was seen, not only its count."""
        return bool(self._counts)

    @property
    def count(self) -> int | None:
        """Steps that are done: as they were seen, or as an optimizer counts whose steps are compiled."""
        told = (count for count in map(_count_of, self._alive()) if count)
        return max((*self._counts.values(), *told), default=None)

    @property
    def lr(self) -> float | None:
        """The learning rate of the optimizer that stepped last, as it is now."""
        optimizer = self._newest() if self._newest is not None else next(iter(self._alive()), None)
        if optimizer is not None:
            self._lr = optimizer.param_groups[0].get("lr")
        return None if self._lr is None else float(self._lr)

    def made(self, optimizer: Any, *args: Any, **kwargs: Any) -> None:
        """Before an optimizer's ``__init__``."""
        self._optimizers.append(weakref.ref(optimizer))

    def resumed(self, *args: Any, **kwargs: Any) -> None:
        """Before an optimizer's ``load_state_dict``."""
        self._resumed = self.may_go_on = True

    def loaded(self, found: Any, *args: Any, **kwargs: Any) -> None:
        """Behind ``torch.load``: a checkpoint may tell how many steps are behind it, or how many epochs."""
        if not isinstance(found, dict):
            return
        self.may_go_on = True
        counts = {name: value for name, value in found.items() if type(value) is int and value > 0}
        schedules = [part.get("last_epoch") for part in found.values() if isinstance(part, dict)]
        self._told = next((counts[name] for name in _NAMES if name in counts), self._told)
        if counts.get("epoch") in schedules:
            self.epochs_before = counts.get("epoch")

    def stepped(self, optimizer: Any, epoch_steps: int | None) -> None:
        """An optimizer made a step."""
        key, own = id(optimizer), None
        if key not in self._counts:
            own = _count_of(optimizer)
            if not self._counts:
                self.before = self._behind(optimizer, own, epoch_steps)
            self._counts[key] = own - 1 if own else self.before or 0
        self._counts[key] += 1
        self._lr = optimizer.param_groups[0].get("lr")  # it may be gone when the program ends
        if self._newest is None or self._newest() is not optimizer:
            self._newest = weakref.ref(optimizer)

    def _alive(self) -> list[Any]:
        return [one for one in (ref() for ref in self._optimizers) if one is not None]

    def _behind(self, optimizer: Any, own: int | None, epoch_steps: int | None) -> int | None:
        others = (_count_of(one) or 0 for one in self._alive() if one is not optimizer)
        counted = max((own or 1) - 1, *others, 0)
        if counted or not self._resumed:
            return counted
        return self._told or (self.epochs_before * epoch_steps if self.epochs_before and epoch_steps else None)


def _count_of(optimizer: Any) -> int | None:
    """The steps that an optimizer counts in its own state; None where it does not."""
    state = getattr(optimizer, "state", {})
    told = next((one["step"] for one in state.values() if isinstance(one, dict) and "step" in one), None)
    return None if told is None else int(told)
