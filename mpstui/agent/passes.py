"""Passes through data loaders: how long an epoch is, which one it is, and how large its batches are."""

from __future__ import annotations

import copy
import weakref
from typing import Any

_MOST_OFTEN = 100
"""A pass that shows each sample more often than this is an endless stream, not an epoch."""
_MOST_OFTEN_UNTOLD = 2
"""The same if its sampler has no length, as endless ones do not."""
_MOST_AHEAD = 4
"""Most batches that may wait for their step, if a loader is read ahead or in another thread."""


class _Pass:
    """One iteration over a loader."""

    def __init__(self, iterator: Any, loader: Any, torch: Any) -> None:
        self.iterator, self.loader = weakref.ref(iterator), weakref.ref(loader)
        self.is_straight = False
        """Whether it directly follows a pass that was trained on to its end."""
        self.begins = 1
        """How many epochs begin with its first step."""
        self.length: int | None = None
        self.size: int | None = None
        """Number of samples in the data set, if the loader does not know its length."""
        self.is_endless = False
        self.batch_size: int | None = loader.batch_size if isinstance(loader.batch_size, int) else None
        if not isinstance(loader.dataset, torch.utils.data.IterableDataset):  # len() of one changes what torch warns of
            try:
                self.length = len(loader)
                self.is_endless = self.length * (self.batch_size or 1) > _MOST_OFTEN * len(loader.dataset)
            except Exception:  # noqa: BLE001 - a sampler of the program's own may not know
                self.length, self.size = None, _size_of(loader.dataset)
        self.batches = self.steps = self.epoch = 0
        self.batches_of_steps = 0
        self.networks: set[int] = set()
        self.evaluates = False
        self.was_only_read = False
        """Whether the program only took its data from this pass, and makes its steps with batches of its own."""
        self.collates = loader.collate_fn is not getattr(torch.utils.data, "default_collate", None)

    def measure(self, batch: Any) -> None:
        """Take the batch size from the first batch, if the loader does not know it.

        With ``batch_size=1`` and a collate function of the program's own, an item may be a whole batch, or a single
        image without a batch dimension: then the size is unknown.
        """
        first = _first_dimension(batch)
        if self.batch_size is None:
            self.batch_size = first
        elif self.batch_size == 1 and self.collates and first != 1:
            self.batch_size = None

    def goes_on(self) -> bool:
        """Return whether it is an endless stream, or has turned out to be one."""
        most = self.size and _MOST_OFTEN_UNTOLD * self.size
        return self.is_endless or bool(most and self.batches * (self.batch_size or 1) > most)

    def was_looked_through(self) -> bool:
        """Return whether it ended, or was recognised as an evaluation, without a step."""
        return not self.steps and (self.evaluates or self.batches == self.length)

    def waits(self, passes_per_step: int) -> bool:
        """Return whether all its batches were fetched, and more are left over than may wait for their steps."""
        return self.batches == self.length and self.batches > _MOST_AHEAD + self.steps * max(1, passes_per_step)


class _Round:
    """The loaders that feed one epoch in turn, such as one for each length of sentence: each is read to its end, and
    the next epoch begins when one of them comes again.

    Loaders that a program creates anew for each epoch are not among them: they do not exist side by side.
    """

    def __init__(self) -> None:
        self._passes: list[_Pass] = []
        """The passes of the current epoch."""
        self._is_alone = False
        """Whether a loader came twice in a row, so that each pass is an epoch."""
        self.whole: int | None = None
        """Batches per epoch of several loaders, once a whole one has been seen."""

    @property
    def is_of_many(self) -> bool:
        """Whether the current epoch is known to consist of passes through several loaders."""
        return len(self._passes) > 1 or self.whole is not None

    @property
    def steps(self) -> int:
        """Steps made in the current epoch."""
        return sum(one.steps for one in self._passes)

    def has_trained(self, network: int) -> bool:
        """Return whether a network was trained on a pass before the newest."""
        return any(network in one.networks for one in self._passes[:-1])

    def begins(self, fed: _Pass, network: int) -> int:
        """Return how many epochs of a network begin with the first step of a pass, including any missed before."""
        passes, loader = self._passes, fed.loader()
        loaders = [one.loader() for one in passes]
        again = loader is not None and any(one is loader for one in loaders)
        beside = bool(passes) and loader is not None and None not in loaders and network in passes[-1].networks
        if beside and not again and not self._is_alone and fed.is_straight:
            passes.append(fed)
            return 0
        missed = 0
        if again and loaders[-1] is loader and self.whole is None:
            self._is_alone, missed = True, len(passes) - 1  # what was taken for one epoch was several
        lengths = [one.length for one in passes if one.length is not None]
        self.whole = sum(lengths) if again and len(lengths) == len(passes) > 1 and not self._is_alone else None
        self._passes = [fed]
        return 1 + missed


class Passes:
    """Finds out which loader feeds the training, and counts its epochs."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._known: weakref.WeakKeyDictionary[Any, _Pass] = weakref.WeakKeyDictionary()
        self._newest: _Pass | None = None
        self._previous: _Pass | None = None
        self._left: _Pass | None = None
        """The pass before, if the newest batch is from another one than the batch before it."""
        self._trained: _Pass | None = None
        self._round = _Round()
        self._begun: dict[int, int] = {}
        """Epochs begun, by network."""
        self._are_epochs = self._are_whole = True
        self._drops_rest = False
        """Whether the last batches of an epoch, too few for a step, are dropped."""
        self._carries_rest = False
        """Whether they are carried over into the first step of the next epoch."""
        self.samples = 0
        """Samples that this process trained on, as far as the batch of each step is known."""

    def begun(self, iterator: Any, loader: Any) -> None:
        """After ``DataLoader.__iter__``."""
        self._known[iterator] = _Pass(iterator, loader, self._torch)

    def fetched(self, batch: Any, iterator: Any) -> bool:
        """After ``__next__`` of a loader's iterator; return whether a pass begins after another came to its end."""
        before, self._left = self._newest, None
        found = before if before is not None and before.iterator() is iterator else self._known.get(iterator)
        if found is None:
            return False
        if found.length and found.batches == found.length:  # it exceeds its length: its sampler repeats
            found = self._known[iterator] = copy.copy(found)
            found.batches = found.steps = found.epoch = found.batches_of_steps = 0
            found.networks, found.was_only_read = set(), False
        if found is not self._newest:
            self._left = before
            if self._newest is not None and not self._newest.was_looked_through():
                self._previous = self._newest
            self._newest = found
        found.batches += 1
        if found.batches == 1:
            found.measure(batch)
            found.is_straight = before is not None and before is self._trained and before.batches == before.length
        return found is not before is not None and before.batches == before.length

    @property
    def looked_through(self) -> int:
        """How many batches the pass before had, if the newest batch has left it and none was trained on; else 0."""
        left = self._left
        return left.batches if left is not None and left.was_looked_through() else 0

    def evaluated(self, batches: int) -> None:
        """Note that so many batches passed without training: if all are from the newest pass, it is an evaluation."""
        if self._newest is not None and self._newest.batches >= batches:
            self._newest.evaluates = True

    def stepped(self, passes_per_step: int, network: int = 0, *, joins: bool = False) -> None:
        """Count a step of an optimizer, with the newest batch unless that was for an evaluation in between.

        Epochs are counted per network: each fold of a cross-validation, and each of several networks that take turns,
        has its own.

        Args:
            passes_per_step: backward passes per step; 0 before the first step.
            network: the number of the network that was trained.
            joins: it takes part in another optimizer's step, as the second one of a GAN does.
        """
        fed, before, other = self._newest, self._trained, self._previous
        if fed is None:
            return
        if other is not None and fed.was_looked_through():
            waits = other.batches > other.steps * max(1, passes_per_step)
            fetched_ahead = other.batches == other.length and fed.batches != fed.length  # all its first step needs
            fed = other if waits or (fed.evaluates and not fetched_ahead) else fed
        if fed.batches == fed.batches_of_steps and network in fed.networks and fed.waits(passes_per_step):
            fed.was_only_read = True
            self._begun.update((one, self._begun[one] - 1) for one in fed.networks)
            fed.networks.clear()
        fed.steps += not joins
        self.samples += (fed.batches - fed.batches_of_steps) * (fed.batch_size or 0)
        fed.batches_of_steps = fed.batches
        if network not in fed.networks and not fed.was_only_read:
            fed.networks.add(network)
            if len(fed.networks) == 1:
                fed.begins = self._round.begins(fed, network)
            first = fed.begins or not self._round.has_trained(network)
            self._begun[network] = self._begun.get(network, 0) + first
            fed.epoch = max(fed.epoch, self._begun[network])
        if fed is before:
            return
        if before is not None and before.length and before.length == before.batches:
            every = max(1, passes_per_step)
            self._drops_rest = before.steps == before.length // every and fed.batches >= every
            if rest := before.length * before.epoch % every:
                whole = before.length * before.epoch // every - before.length * (before.epoch - 1) // every
                self._carries_rest = before.steps == whole and fed.batches == every - rest
        self._trained = fed
        self._are_epochs = self._are_epochs and not fed.is_endless
        if before is not None and before.length != before.batches:
            # `next(iter(loader))` for each step is not an epoch; a pass that was left early has another length.
            self._are_epochs = self._are_epochs and before.batches > 1
            self._are_whole = self._are_whole and before.length is None

    @property
    def on_same_batch(self) -> bool:
        """Whether no batch was fetched since the newest step."""
        fed = self._newest
        return fed is not None and fed is self._trained and fed.batches == fed.batches_of_steps

    def take_back(self, steps: int) -> None:
        """Take back steps with the newest batch that turned out to be parts of one."""
        if steps and self._trained is not None:
            self._trained.steps -= steps

    def epoch_steps(self, passes_per_step: int) -> int | None:
        """Return the optimizer steps per epoch; None if unknown."""
        fed = self._trained
        if fed is None or not fed.length or fed.is_endless or fed.was_only_read or not self._are_whole:
            return None
        every = max(1, passes_per_step)
        if self._round.is_of_many:
            return None if self._round.whole is None else -(-self._round.whole // every)
        if self._carries_rest:
            return fed.length * fed.epoch // every - fed.length * (fed.epoch - 1) // every
        whole, rest = divmod(fed.length, every)
        return whole if not rest or (self._drops_rest and fed.steps <= whole) else whole + 1

    def facts(
        self,
        passes_per_step: int,
        steps_before: int | None,
        epochs_before: int | None,
        training: int = 1,
        epoch_saved: int | None = None,
    ) -> dict[str, Any]:
        """Return the heartbeat fields that depend on the passes.

        Args:
            passes_per_step: backward passes per step; 0 before the first step.
            steps_before: optimizer steps done before this process, None if unknown.
            epochs_before: epochs done before, if a checkpoint said so.
            training: which training of this process it is, from 1.
            epoch_saved: ``epoch`` in the checkpoint. If ``steps_before`` implies another one, those steps were made
                with another batch size, and do not count epochs.
        """
        fed = self._trained
        if fed is None:
            return {}
        if fed.was_only_read:  # the first beat took its passes for epochs
            return dict.fromkeys(("epoch", "epochs", "epoch_step", "epoch_steps", "epoch_batches", "batch_size"))
        every, steps = max(1, passes_per_step), self.epoch_steps(passes_per_step)
        done = self._round.steps if self._round.is_of_many else fed.steps
        if steps is not None and (done > steps or fed.steps * every > fed.batches + every):
            steps = None  # several steps per batch
        if epochs_before is None and steps_before and steps and steps_before % steps == 0:
            whole = steps_before // steps
            epochs_before = whole if epoch_saved is None or whole in (epoch_saved, epoch_saved + 1) else None
        known = epochs_before if steps_before != 0 else 0
        epoch = fed.epoch + known if self._are_epochs and known is not None and not fed.goes_on() else None
        begun = list(self._begun.items())  # the other thread may be asking
        others = [done for network, done in begun if network not in fed.networks]
        alike = training > 2 and len(set(others)) == 1 and fed.epoch <= others[0]  # folds, or the clients of each round
        return {
            "epoch": epoch,
            "epochs": others[0] if alike and epoch is not None else None,
            "epoch_step": done if steps and self._are_epochs else None,
            "epoch_steps": steps if self._are_epochs else None,
            "epoch_batches": fed.length if self._carries_rest and steps and self._are_epochs else None,
            "batch_size": fed.batch_size,
        }


def _size_of(dataset: Any) -> int | None:
    try:
        return len(dataset)
    except Exception:  # noqa: BLE001 - nor may a data set of its own
        return None


def _first_dimension(batch: Any, depth: int = 0) -> int | None:
    """Return the first dimension of the first tensor in a batch; None if there is none."""
    shape = getattr(batch, "shape", None)
    if shape is not None and len(shape):
        return int(shape[0])
    parts = batch.values() if isinstance(batch, dict) else batch if isinstance(batch, (list, tuple)) else ()
    found = (_first_dimension(part, depth + 1) for part in parts if depth < 3)
    return next((size for size in found if size), None)
