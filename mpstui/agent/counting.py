"""Counts a program's optimizer steps, from where it resumes, through all the trainings in the process."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Any

from .parsed import ParsedArguments

_NAMES = ("global_step", "step", "iter_num", "iteration", "iter", "steps", "num_steps", "n_iter")
"""Names that checkpoints give to the number of optimizer steps done."""
_MOST = 1000
"""Most weights of a network that are looked at."""
_MOST_PARTS = 20
"""So many steps with one batch are no longer taken for parts of a single one."""
_LOOK_SECONDS = 0.2
"""Least seconds between two looks at the values of weights: some programs evaluate after every step."""
_FEW = 3
"""Most writes to a weight when its network is initialised again."""


class Steps:
    """Counts optimizer steps; after a resume it continues from the count in the optimizer or in a checkpoint.

    Optimizers that take turns (as in a GAN) make one step together; the steps of consecutive trainings add up.
    """

    def __init__(self, begun_from: Callable[[list[str]], int | None] = lambda loaded: None) -> None:
        """``begun_from`` takes the paths that were loaded and returns the step of the checkpoint being resumed."""
        self._begun_from = begun_from
        self.before: int | None = 0
        """Steps done before this process; None: unknown."""
        self.epochs_before: int | None = None
        """Epochs done before this process, if a checkpoint and the scheduler in it agree."""
        self.epoch_saved: int | None = None
        """``epoch`` in the checkpoint: the number of epochs done, or one less if they are counted from 0."""
        self.training = 1
        """Which training of this process it is, from 1: an optimizer of other parameters begins the next one."""
        self._seen: int | None = None
        self._most: int | None = None
        self._round: list[weakref.ref[Any]] = []
        """Optimizers that took part in the newest step."""
        self._turns = _Turns()
        self._in_a_row = 0
        """How many steps in a row the first of them has made."""
        self._earlier = 0
        """Steps done when the first of ``_optimizers`` was created."""
        self._optimizers: list[weakref.ref[Any]] = []
        self._made: set[int] = set()
        self._networks: dict[int, int] = {}
        """By id of each optimizer that has stepped since then: the number of its network."""
        self._count_of_networks = 0
        self._trained: dict[int, tuple[weakref.ref[Any], int]] = {}
        """By id of each parameter: itself and the number of its network."""
        self._one_by_one = True
        self._written: dict[int, _Written] = {}
        """By id of each optimizer: the network that it trains."""
        self._looks_again = False
        """Whether no backward pass followed an optimizer's creation: its network may yet be initialised again."""
        self._looked_at = float("-inf")
        self._newest: weakref.ref[Any] | None = None
        self._resumed = self._read_optimizer = False
        self.may_go_on = False
        """Whether something was loaded that a training could resume from."""
        self._begun = False
        self._count_begun: int | None = None
        """``count`` at the first backward pass."""
        self._told: int | None = None
        self._loaded: list[str] = []
        """Paths of the checkpoints that were loaded, newest first."""
        self._lr: Any = None
        self.parsed = ParsedArguments()
        """What the program's arguments say: how many epochs or steps are planned."""

    @property
    def seen(self) -> bool:
        """Whether a step was seen as it was made, rather than found in an optimizer's own count."""
        return self._seen is not None

    @property
    def stand_still(self) -> bool:
        """Whether no step was made since the first backward pass, not even a compiled one (counted, but not seen)."""
        return not self.seen and (not self._begun or self.count == self._count_begun)

    @property
    def already(self) -> int | None:
        """Steps done, as far as they were seen. Reads no tensor."""
        return self._seen

    @property
    def count(self) -> int | None:
        """Steps done: as seen, or from the optimizer's own count if its steps are compiled."""
        told = max(((_count_of(one) or 0) - self._turns.parts.get(id(one), 0) for one in self._alive()), default=0)
        if told or self.seen:
            self._most = max(self._most or 0, self._seen or 0, self._earlier + told)
        return self._most

    @property
    def lr(self) -> float | None:
        """The current learning rate of the optimizer that stepped last."""
        optimizer = self._newest() if self._newest is not None else next(iter(self._alive()), None)
        if optimizer is not None:
            self._lr = optimizer.param_groups[0].get("lr")
        return None if self._lr is None else float(self._lr)

    def facts(self) -> dict[str, Any]:
        """Return the heartbeat fields that depend on the count."""
        training = self.training if self.training > 1 else None
        planned = {f"planned_{name}": getattr(self.parsed, name) for name in ("epochs", "steps", "batch_size")}
        return {"lr": self.lr, "begun_step": self.before or None, "training": training, **planned}

    def behind(self) -> dict[str, Any]:
        """Return what was done before this process, for counting its epochs."""
        known = {"steps_before": self.before, "epochs_before": self.epochs_before, "epoch_saved": self.epoch_saved}
        return {**known, "training": self.training}

    def made(self, optimizer: Any, *args: Any, **kwargs: Any) -> None:
        """Before an optimizer's ``__init__``; one created after the first step may belong to another training."""
        trained = self.seen or not self._resumed  # otherwise the count may have been loaded
        # An optimizer created during the first step takes part in it: some programs create one for each parameter.
        if trained and (self.count or 0) > self._earlier + 1:
            self._forget_what_is_anew()
            self._looks_again = True
            self._earlier, self._optimizers = self.count or 0, []
            self._seen = None if self._seen is None else self._earlier
            self._round.clear()
            self._made.clear()
            self._networks.clear()
        self._made.add(id(optimizer))
        self._turns.parts.pop(id(optimizer), None)
        self._networks.pop(id(optimizer), None)  # an earlier optimizer at the same address
        self._optimizers.append(weakref.ref(optimizer))

    def begins(self) -> None:
        """Before a backward pass: some programs create their optimizers and then initialise the weights again."""
        if not self._begun:
            self._begun, self._count_begun = True, self.count
        if self._looks_again:
            self._looks_again = False
            self._forget_what_is_anew()

    def evaluates(self, now: float) -> None:
        """Note that an evaluation begins: if the training does not go on, the networks' weights are final."""
        self.ends_step()
        if now - self._looked_at >= _LOOK_SECONDS and os.environ.get("WORLD_SIZE", "1") == "1":
            self._looked_at = now
            for written in self._written.values():
                written.look()

    def ends_step(self) -> None:
        """End the newest step, as an evaluation or another pass through the data begins: the next optimizer does not
        join it, even if all optimizers were created at the start, as some programs do for all folds."""
        self._round.clear()

    def resumed(self, optimizer: Any, state: Any = None, *args: Any, **kwargs: Any) -> None:
        """Before an optimizer's ``load_state_dict``; accelerate calls it even on a new one, with its own state."""
        if isinstance(state, dict) and not state.get("state", True) and not self._read_optimizer:
            return
        self._resumed = True
        self.may_go_on = self.may_go_on or not self.seen
        if self._earlier:  # it may continue another optimizer, whose steps were seen
            self._optimizers = [ref for ref in self._optimizers if ref() is not optimizer]

    def loaded(self, found: Any, f: Any = None, *args: Any, **kwargs: Any) -> None:
        """After ``torch.load``: a checkpoint may say how many steps or epochs were done."""
        if not isinstance(found, dict) or self.seen or _is_data(found):  # if seen: the best weights, for a final test
            return
        self.may_go_on = True
        if isinstance(f, (str, os.PathLike)):
            self._loaded.insert(0, os.path.abspath(f))  # noqa: PTH100
        parts = (found, *(part for part in found.values() if isinstance(part, dict)))
        self._read_optimizer = self._read_optimizer or any("param_groups" in part for part in parts)
        counts = {name: value for name, value in found.items() if type(value) is int and value > 0}
        schedules = [part.get("last_epoch") for part in found.values() if isinstance(part, dict)]
        self._told = next((counts[name] for name in _NAMES if name in counts), self._told)
        self.epoch_saved = counts.get("epoch", self.epoch_saved)
        if counts.get("epoch") in schedules:
            self.epochs_before = counts.get("epoch")

    def network(self, optimizer: Any) -> int:
        """Return the number of its network, in order of first steps; optimizers that share a parameter share one."""
        known = self._networks.get(id(optimizer))
        return self._found(optimizer) if known is None else known

    def joins(self, optimizer: Any, *, on_same_batch: bool = False) -> bool:
        """Return whether its next step is part of one that has already begun.

        Among optimizers that take turns, one may make several steps with the same batch.
        """
        others = False
        for ref in self._round:  # a plain loop, for speed: this runs at each step
            one = ref()
            if one is optimizer:
                again = on_same_batch and self._round[-1]() is optimizer
                self._turns.again += again
                self._turns.repeat = self._turns.repeat and max(self._turns.again, len(self._round)) < _MOST_PARTS
                return again and self._turns.taken and self._turns.repeat
            others = others or one is not None
        return others

    def stepped(self, optimizer: Any, epoch_steps: int | None, *, joins: bool) -> int:
        """Count an optimizer's step; return how many steps counted earlier turn out to be part of this one.

        Args:
            epoch_steps: steps per epoch, if known.
            joins: whether it is part of a step that has already begun.
        """
        before = 0
        if self._seen is None:
            self.before = self._behind(optimizer, _count_of(optimizer), epoch_steps)
            self._seen = max(self.before or 0, self._earlier)
        self._newest = weakref.ref(optimizer)
        if joins:
            first, before = self._round[0](), 0 if self._turns.taken or not self._turns.repeat else self._turns.again
            self._seen, self._turns.taken = self._seen - before, True
            again = any(ref() is optimizer for ref in self._round)
            for one, parts in ((first, before), (optimizer, int(again))):
                self._turns.parts[id(one)] = self._turns.parts.get(id(one), 0) + parts
            self._round.append(self._newest)
        else:
            again = bool(self._round) and self._round[-1]() is optimizer
            joined = again and len(self._round) > 1
            # Many steps of one, then many of another, are not turns: what joined the last one was a step of its own.
            self._seen += 2 if joined and self._in_a_row > 1 else 1
            self._in_a_row = 2 if joined else self._in_a_row + 1 if again else 1
            self._round = [self._newest]
            self._turns.again = self._turns.again if again else 0
        if (written := self._written.get(id(optimizer))) is not None:
            written.steps += 1
        self._lr = optimizer.param_groups[0].get("lr")  # the optimizer may be gone when the program ends
        return before

    def _found(self, optimizer: Any) -> int:
        """At an optimizer's first step, return the number of its network and decide whether a new training begins.

        No training begins if the previous one goes on alongside, as in meta-learning.
        """
        trained = {key: (ref, number) for key, (ref, number) in self._trained.items() if ref() is not None}
        weights = {id(one): one for group in optimizer.param_groups for one in group["params"]}
        known = (trained[key][1] for key, one in weights.items() if key in trained and trained[key][0]() is one)
        number = next(known, self._count_of_networks)
        if self._earlier and id(optimizer) not in self._made:
            self._one_by_one, self.training = False, 1
        elif number == self._count_of_networks > 0 and not self._round and self._one_by_one:
            self.training += 1
        self._count_of_networks = max(self._count_of_networks, number + 1)
        self._trained = trained | {key: (weakref.ref(one), number) for key, one in weights.items()}
        self._networks[id(optimizer)] = number
        kept = self._written.items()
        self._written = {key: one for key, one in kept if one.network != number or key in self._made}
        self._written[id(optimizer)] = _Written(number, list(weights.values()))
        return number

    def _forget_what_is_anew(self) -> None:
        """From here on, take a network that was initialised again for a new one."""
        anew = {one.network for one in self._written.values() if one.anew()}
        self._trained = {key: known for key, known in self._trained.items() if known[1] not in anew}
        self._written = {key: one for key, one in self._written.items() if one.network not in anew and one.lives}

    def _alive(self) -> list[Any]:
        return [one for one in (ref() for ref in self._optimizers) if one is not None]

    def _behind(self, optimizer: Any, own: int | None, epoch_steps: int | None) -> int | None:
        others = (_count_of(one) or 0 for one in self._alive() if one is not optimizer)
        counted = max((own or 1) - 1, *others, 0)
        if counted:
            return counted
        known = self._begun_from(self._loaded if self._resumed else []) if self.may_go_on else None
        if not self._resumed:
            return known or 0
        of_epochs = self.epochs_before * epoch_steps if self.epochs_before and epoch_steps else None
        return self._told or known or of_epochs


class _Turns:
    """How many steps each of several optimizers that take turns makes with the same batch."""

    def __init__(self) -> None:
        self.taken = False
        """Whether any step so far was made by several optimizers."""
        self.repeat = True
        """Whether several steps with one batch may be parts of one: there were never too many of them."""
        self.again = 0
        """Further steps of the first optimizer with the batch of its first step, before any other made one."""
        self.parts: dict[int, int] = {}
        """By optimizer id: how many of its steps were part of one in which it had already taken part."""


class _Written:
    """Tells whether a network was initialised again, by how often its weights were written (torch's version counters).

    Each optimizer step writes every weight equally often. If the counts of all weights differ from that, something else
    has written them: a fold of a cross-validation that starts over with the same network. A few extra writes to some of
    the weights are enough, since others may be written behind torch's back (``weight.data``); weights that do not take
    part in each step have fewer.
    """

    def __init__(self, network: int, weights: list[Any]) -> None:
        """Remember a network as it is after the first step of an optimizer that trains it."""
        self.network = network
        self.steps = 0
        """Steps of this optimizer, including the first."""
        self._known = [(weakref.ref(one), _times(one)) for one in weights[:_MOST]]
        self._values: list[tuple[weakref.ref[Any], int, list[float]]] = []

    def look(self) -> None:
        """Remember a few values of a few weights, to compare them later."""
        alive = [one for one in (ref() for ref, _ in self._known[: 2 * _FEW]) if one is not None and _is_plain(one)]
        self._values = [(weakref.ref(one), _times(one), _some_of(one)) for one in alive[:_FEW]]

    @property
    def lives(self) -> bool:
        """Whether any of its weights still exists."""
        return any(ref() is not None for ref, _ in self._known)

    def anew(self) -> bool:
        """Return whether something other than the optimizer has written the weights since."""
        steps = self.steps - 1
        looked = ((ref(), version, values) for ref, version, values in self._values)
        kept = [one is None or _times(one) != version or _some_of(one) == values for one, version, values in looked]
        if kept and not any(kept):
            return True
        alive = ((ref(), version) for ref, version in self._known)
        written = [_times(one) - version for one, version in alive if one is not None]
        if steps < 2 or not written:
            return False
        few = steps > 2 * _FEW and any(times > steps and 0 < times % steps <= _FEW for times in written)
        return few or all(times % steps for times in written)


def _is_plain(weight: Any) -> bool:
    """Return whether its values can be read cheaply, without asking other processes for them."""
    return type(weight).__name__ in ("Parameter", "Tensor") and weight.is_contiguous() and not weight.is_meta


def _some_of(weight: Any) -> list[float]:
    return [0.0 if value != value else value for value in weight.detach().view(-1)[:16].tolist()]


def _times(weight: Any) -> int:
    return int(getattr(weight, "_version", 0))


def _is_data(found: dict[Any, Any]) -> bool:
    """Return whether what was loaded is a data set, ``{"x": .., "y": ..}``, rather than weights."""
    names = [name for name, value in found.items() if isinstance(name, str) and hasattr(value, "shape")]
    return 0 < len(names) == len(found) and not any("." in name or name in ("weight", "bias") for name in names)


def _count_of(optimizer: Any) -> int | None:
    """Return the number of steps in an optimizer's own state; None if it does not count them."""
    state = getattr(optimizer, "state", {})
    told = next((one["step"] for one in state.values() if isinstance(one, dict) and "step" in one), None)
    return None if told is None else int(told)
