"""The newest numbers of a run, each from the witness that knows it best.

The agent or our trainer, the program's own heartbeat file, its output and its arguments may count different things
under one name: micro-batches or optimizer steps, from the start of the process or from the start of the training.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ...wire.heartbeat import DeviceReading, Heartbeat, integer, number, text
from ..model.snapshot import Numbers
from ..series.metric_words import NOT_METRICS, respelt
from .step_rate import FEWEST_COMPARED, MOST_APART_SECONDS

REPORT = "report"
"""Name of the most reliable witness: the training code itself, calling our API."""
_BEATS_OF_SHORT_EPOCH = 2
"""An epoch is short if the agent, which samples the loss once a second, sees at most this many of its losses."""
_RATES = ("samples_per_second", "steps_per_second")
_SHOWN_APART = ("loss", "lr", *_RATES)
_OF_BEATS = ("step", "steps", "epoch", "epochs", "first_epoch", "epoch_step", "epoch_steps", "loss", "lr", *_RATES)
_COUNTS: Mapping[str, Callable[[Any], float | None]] = {"step": integer, "epoch": number}
"""Each counter and the function that reads it from a witness. Its total has the same name plus an s."""


class Witness(NamedTuple):
    """What one witness says about a run, keyed like a metrics record; a loss of None means it was not finite."""

    name: str
    says: Mapping[str, Any]


def said(beat: Heartbeat | None, points: Mapping[str, Any]) -> dict[str, Any]:
    """Merge a heartbeat with the newest points; where they differ, the newer one wins."""
    if beat is None:
        return dict(points)
    told = {name: value for name in _OF_BEATS if (value := getattr(beat, name)) is not None}
    told = {**beat.metrics, **told, **({"loss": None} if "loss" in beat.nonfinite else {})}
    newer = (number(points.get("time")) or 0.0) > beat.time
    known = {name: value for name, value in points.items() if value is not None or name == "loss"}
    takes_turns = beat.loss_seen == "backward" and beat.accumulate is None and len(beat.metrics) > 1
    if beat.loss is None and "loss" not in told and ((beat.accumulate or 1) > 1 or takes_turns):
        # The loss in the points is from before gradients were accumulated, or before a second loss appeared.
        points = {name: value for name, value in known.items() if name != "loss"}
    if beat.epoch is not None and (number(known.get("epoch")) or 0) < beat.epoch:
        known.pop("epoch", None)  # reported at the end of an epoch; the agent is in the next one
    return {**told, **known} if newer else {**points, **told}


class NumberWitnesses(NamedTuple):
    """All witnesses of one run."""

    own: Witness
    """The heartbeat and points in our formats, from a trainer that reports to us or from the agent."""
    program: Witness
    """The program's own heartbeat file."""
    printed: Witness
    """What the program prints or writes to a metric file."""
    asked: Witness
    """The totals among the program's arguments."""
    beat: Heartbeat | None = None
    """The heartbeat in our format; its numbers are in ``own``."""
    resumed: bool = False
    """True if the attempt started from a checkpoint."""

    @property
    def parsed(self) -> Witness:
        """The totals in the program's argument parser, which may be defaults that nobody chose."""
        names = ("epochs", "steps", "batch_size")
        return Witness("arguments", {name: getattr(self.beat, f"planned_{name}", None) for name in names})

    @property
    def counts_anew(self) -> bool:
        """True if the agent counts from the start of this process: the program's own steps and epochs are better."""
        return self.beat is not None and self.beat.step_from == "process"

    @property
    def counts_updates(self) -> bool:
        """True if the agent counts optimizer steps while the program may count steps of an environment, or of LBFGS."""
        return self.beat is not None and self.beat.step_from in ("updates", "evaluations")

    @property
    def sees_losses(self) -> bool:
        """True if the agent takes the loss from ``backward``, where gradient accumulation has divided it."""
        return self.beat is not None and self.beat.loss_seen == "backward"

    @property
    def sees_epochs(self) -> bool:
        """True if the agent counts epochs itself (from 1)."""
        return self.beat is not None and self.sees_losses and "epoch" not in self.beat.reported

    @property
    def trainings(self) -> int:
        """How many trainings the agent has seen in this process; it restarts its epoch count in each."""
        return 1 if self.beat is None else self.beat.training or 1

    @property
    def is_in_stages(self) -> bool:
        """True if the printed epochs start over while the agent sees the same network being trained further."""
        epoch, passes = integer(self.printed.says.get("epoch")), integer(self.own.says.get("epoch"))
        if not self.printed.says.get("starts_anew") or self.trainings > 1 or epoch is None or passes is None:
            return False
        return passes > epoch + 1  # it may be one ahead of a line printed at the end of an epoch

    @property
    def is_one_of_many(self) -> bool:
        """True if this is one of an unknown number of trainings in the process."""
        return self.is_in_stages or (self.beat is not None and self.beat.training is not None)

    def joined(self) -> Numbers:
        """Return each number from the witness that knows it best."""
        found: dict[str, Any] = {}
        by: dict[str, str] = {}
        for count, read in _COUNTS.items():
            alike = count == "step" and self.counts_alike
            order = self._order_of(count, alike=alike)
            first = next((one for one in order if read(one.says.get(count)) is not None), None)
            if first is not None:
                found[count], by[count] = read(first.says[count]), first.name
            if alike and first is self.own:  # the printed line may be newer than the heartbeat
                found[count] = max(found[count], self.printed.says.get("printed_step") or 0)
            if (planned := self._planned(count, first, found.get(count), alike=alike)) is not None:
                found[f"{count}s"], by[f"{count}s"] = planned
            if first is not None and count == "epoch":
                found |= self._in_epoch(first, order, found)
        if "epoch" not in found and "step" in found and found.get("epochs") == found.get("steps") is not None:
            found |= {"epoch": found["step"], "first_epoch": 1, "epoch_done": True}  # a bar over one-step epochs
            by["epoch"] = by["step"]
        if (teller := next(self._of_loss(), None)) is not None:
            found["loss"], by["loss"] = number(teller.says["loss"]), teller.name
            found["loss_is_finite"] = found["loss"] is not None
        for name in ("lr", *_RATES):
            for one in (self.own, self.program, self.printed):
                of_other_steps = name == "steps_per_second" and by.get("step", one.name) != one.name
                if name not in found and not of_other_steps and (value := number(one.says.get(name))) is not None:
                    found[name], by[name] = value, one.name
        return Numbers(**found, metrics=self.metrics(), told_by=by)

    def _order_of(self, count: str, *, alike: bool) -> Sequence[Witness]:
        """Return who may give a count, best first; the agent is last if it counts something else than the program."""
        printed = self.printed.says.get("printed_step")
        behind = count == "step" and _falls_behind(printed, self.own.says.get("step"))
        if count == "epoch" and not self.counts_anew and self._has_epochs_of_its_own():
            return self.program, self.printed  # the agent's place in a pass says nothing about such an epoch
        counts_other = self.counts_anew or (count == "step" and self.counts_updates)
        if not counts_other or alike or behind:
            return self.own, self.program, self.printed
        # Printed steps precede the agent's, but not those merely derived from epochs and batches.
        return self.program, self.printed._replace(says={**self.printed.says, "step": printed}), self.own

    def _has_epochs_of_its_own(self) -> bool:
        """True if the program's epoch is not a pass through the data, which is what the agent counts.

        It may be a fixed number of steps, fewer than a pass has; a round of trainings, each with epochs of its own; or
        an epoch of a stage: the printed count starts over while the same network is trained further.
        """
        says, passes = self.printed.says, integer(self.own.says.get("epoch"))
        epoch, planned = integer(says.get("epoch")), integer(says.get("epochs"))
        if not self.sees_epochs or epoch is None or passes is None:
            return False
        if says.get("of_trainings"):
            return True
        epoch += says.get("first_epoch") == 0
        if self.trainings > 1:  # an epoch printed by the previous training does not belong to this one
            of_each = integer(self.own.says.get("epochs"))
            return of_each is not None and max(epoch, planned or 0) > of_each
        if self.is_in_stages:
            return True
        rate, length = (number(self.own.says.get(name)) for name in ("steps_per_second", "epoch_steps"))
        since_the_beat = MOST_APART_SECONDS * rate / length if rate and length else 0.0
        is_shorter = (integer(says.get("epoch_steps")) or math.inf) < (length or 0.0)
        begins = 0 if is_shorter else 1  # an epoch's heading is printed before its first step
        return epoch > passes + max(begins, since_the_beat)

    def _planned(
        self, count: str, first: Witness | None, now: float | None, *, alike: bool
    ) -> tuple[float, str] | None:
        """Return the total of a count and its source: whoever gave the count, else the arguments, else any other.

        Args:
            first: the witness that gave the count.
            now: the count itself.
            alike: True if the program prints the same steps as the agent counts.
        """
        parsed, beside = self.parsed, (first or self.own, self.printed) if alike else (first or self.own,)
        of_passes = (self.own,) if count == "step" or first in (None, self.own) or self.counts_anew else ()
        totals = (*beside, self.program, self.asked, self.printed, *of_passes, *((parsed,) if first else ()))
        from_zero = first is self.own and self.counts_anew and self.resumed and not alike
        for one in totals[:1] if from_zero else totals:
            planned = _COUNTS[count](one.says.get(f"{count}s"))
            if count == "epoch" and one is self.printed and planned is not None:
                planned += self._names_last(planned)
            if count == "step" and one is self.printed and self._is_of_first_pass(planned):
                continue
            if one in (self.asked, parsed):
                planned = self._asked(count, planned, first, now or 0)
            if count == "step" and planned is not None and now == planned + 1:
                planned += 1  # the loop ends with `if step > max_steps: break`
            if planned is not None and planned >= (now or 0):
                return planned, one.name
        return None

    def _is_of_first_pass(self, told: float | None) -> bool:
        """True if a printed total (usually a progress bar's) is only the length of the first pass through the data,
        and nothing says how many passes follow."""
        if not self.sees_epochs or self.beat is None or self.beat.phase == "done":
            return False
        if told is None or self.beat.epoch != 1 or self.beat.epoch_steps != told:
            return False
        witnesses = (self.own, self.program, self.asked, self.printed, self.parsed)
        is_called_so = self.printed.says.get("planned_steps") == told
        return not is_called_so and all(number(one.says.get("epochs")) is None for one in witnesses)

    def _names_last(self, told: float) -> bool:
        """True if a program that counts epochs from 0 prints the last index instead of the total: ``Epoch 0/24`` for
        25 epochs. Its arguments reveal that, or the agent on reaching one epoch more than the printed total."""
        own = number(self.own.says.get("epoch")) if self.sees_epochs else None
        totals = (own, self.asked.says.get("epochs"), self.parsed.says.get("epochs"))
        return self.printed.says.get("first_epoch") == 0 and told + 1 in totals

    def metrics(self) -> dict[str, float | None]:
        """Return all metrics except loss, rates and learning rate, under the names that the program prints.

        The program's own value of a metric precedes what the agent saw: it may be a mean.
        """
        found: dict[str, float | None] = {}
        spelt: dict[str, str] = {}
        for one in (self.printed, self.program, self.own):
            told = {name: value for name, value in reported_metrics(one.says).items() if name not in _SHOWN_APART}
            for name, value in told.items():
                twin = spelt.get(respelt(name), name)
                shown = name if twin in told else twin  # two names of one witness are two metrics
                if shown not in found or one is not self.own or not self.sees_losses:
                    found[shown] = value
            spelt = {respelt(name): name for name in told} | spelt
        return found

    def _in_epoch(self, first: Witness, order: Sequence[Witness], found: Mapping[str, Any]) -> dict[str, Any]:
        """Return the epoch given by ``first``, numbered as the program prints it, and the position within it."""
        epoch, start = found["epoch"], integer(first.says.get("first_epoch"))
        printed = self.printed.says if first is self.own and self.sees_epochs else {}
        if printed.get("first_epoch") == 0 and integer(printed.get("epoch")) is not None:
            epoch, start = epoch - 1, 0
        told = {**found, "epoch": epoch, "first_epoch": 1 if start is None else start}
        told["epoch_done"] = first.says.get("epoch_done") is True
        if self.trainings > 1 and first is not self.own:
            return told  # the position would be that of one of the trainings of this epoch
        fitting = (one for one in (first, *order) if one.says.get("epoch_steps"))
        within = next((one for one in fitting if one is self.own or _is_epoch(one, told)), first)
        if within.says.get("epoch_steps") == self.own.says.get("epoch_steps"):
            within = self.own  # the same batches, but reported at every step
        told |= {name: integer(within.says.get(name)) for name in ("epoch_step", "epoch_steps")}
        return {**told, **self._in_steps(told)} if within is self.printed else told

    @property
    def counts_alike(self) -> bool:
        """True if the steps that the program prints now and then are the ones that the agent counts.

        They may be printed as batches of an epoch if both give an epoch the same length. Both then count completed
        steps, and between two lines the agent's count is the newer one.
        """
        says, seen = self.printed.says, integer(self.own.says.get("step"))
        as_long = says.get("epoch_steps") is not None and says["epoch_steps"] == self.own.says.get("epoch_steps")
        printed = integer(says.get("step" if as_long else "printed_step"))
        may_be = self.counts_anew or (self.beat is not None and self.beat.step_from == "evaluations")
        rate = number(self.own.says.get("steps_per_second"))
        return may_be and None not in (printed, seen) and are_alike(printed or 0, seen or 0, rate)

    def _asked(self, count: str, asked: float | None, first: Witness | None, now: float) -> float | None:
        """Put a total from the arguments on the scale of the count: ``--epochs 2`` starting at epoch 4 ends with 5.

        ``--epoch 20`` may mean the total, unless it is the epoch to start from or to resume after.
        """
        begun = integer(self.printed.says.get("begun_epoch")) or 0
        if count == "step" and first is self.own and self.beat is not None and self.beat.step_from == "updates":
            return None
        if asked is None and count == "epoch" and first is not None and not self.resumed:
            maybe = number(self.asked.says.get("epoch"))
            asked = maybe if maybe is not None and begun < maybe else None
        if asked is None:
            return None
        if count == "epoch" and asked < begun <= now < begun + asked:
            return begun + asked - 1
        return asked

    def _in_steps(self, found: Mapping[str, Any]) -> dict[str, int]:
        """Convert the position in the epoch from samples to steps if the arguments contain the batch size.

        Only if the result agrees with the steps done: it does not if several processes take a batch each.
        """
        sizes = (integer(one.says.get("batch_size")) for one in (self.asked, self.parsed))
        batch, step = next(filter(None, sizes), None), found.get("step") or 0
        done, whole = found["epoch_step"], found["epoch_steps"]
        if not batch or done is None or not whole or step < FEWEST_COMPARED:
            return {}
        before = math.floor(found["epoch"]) - found["first_epoch"]
        if before * whole + done <= 1.5 * step:
            return {}  # already in steps
        done, whole = math.ceil(done / batch), math.ceil(whole / batch)
        return {"epoch_step": done, "epoch_steps": whole} if step / 2 <= before * whole + done <= 1.5 * step else {}

    def _of_loss(self) -> Iterator[Witness]:
        """Yield the witnesses that know a loss, best first: one printed along the steps precedes the agent's."""
        epoch, begun = (integer(self.printed.says.get(name)) or 0 for name in ("epoch", "begun_epoch"))
        steps, epochs = integer(self.own.says.get("step")) or 0, epoch - begun + 1
        # An epoch may be one step (a whole graph, say), or so short that its mean is printed as often as a beat comes.
        beats, is_done = (0, False) if self.beat is None else (self.beat.seq, self.beat.phase == "done")
        are_short = 1 < steps <= epochs or 1 < beats <= _BEATS_OF_SHORT_EPOCH * epochs
        # After the last step, the printed mean of the epoch says more than the loss of its last batch.
        along = (self.printed,) if self.printed.says.get("along_steps") or are_short or is_done else ()
        order = (self.own, *along, self.program, self.printed)
        if self.sees_losses:
            divided = (number(self.own.says.get("backward_passes_per_step")) or 1.0) > 1.0
            counts = integer(self.own.says.get("step")) is not None  # otherwise it has a single loss and no curve
            seen = (self.own,) if counts and not divided else ()
            order = (*along, *seen, self.program, self.printed, self.own)
        return (one for one in order if "loss" in one.says)


def in_epochs(beat: Heartbeat | None, printed: Mapping[str, Any], asked: Mapping[str, Any]) -> Heartbeat | None:
    """Recount the agent's heartbeat in planned epochs if the whole training is one pass through the loader: the pass
    has as many steps as the total that the program prints, and the planned epochs divide it evenly.

    Args:
        printed: the newest values from the output.
        asked: the totals from the arguments.
    """
    if beat is None or beat.loss_seen is None or "epoch" in beat.reported:
        return beat
    if beat.epoch != 1 or beat.epoch_step != beat.step or not beat.step:
        return beat
    steps, epochs = integer(printed.get("planned_steps")), integer(printed.get("epochs") or asked.get("epochs"))
    if not steps or beat.epoch_steps != steps or not epochs or epochs < 2 or steps % epochs:
        return beat
    length = steps // epochs
    before = (beat.step - 1) // length
    return beat._replace(epoch=before + 1, epoch_step=beat.step - before * length, epoch_steps=length)


def counts_samples(seen: Heartbeat | None, printed: Mapping[str, Any]) -> bool:
    """True if the program counts samples within an epoch: as many as fit the batches that the agent has ``seen``."""
    whole = integer(printed.get("epoch_steps"))
    if seen is None or whole is None or not seen.epoch_steps or not seen.batch_size:
        return False
    batches = seen.epoch_steps * (seen.accumulate or 1)
    return whole > batches > 1 and (batches - 1) * seen.batch_size < whole <= batches * seen.batch_size


def are_alike(printed: float, seen: float, steps_per_second: float | None) -> bool:
    """True if a printed step may belong to the count that the agent has ``seen``: not every step is printed, and the
    heartbeat may be older than the newest line."""
    return seen / 2 <= printed <= seen + MOST_APART_SECONDS * (steps_per_second or 0.0)


def _falls_behind(printed: Any, seen: Any) -> bool:
    """True if the printed count is too low for its newest line to be merely old: it counts something else."""
    return integer(printed) is not None and 2 * (integer(printed) or 0) < (integer(seen) or 0)


def _is_epoch(within: Witness, found: Mapping[str, Any]) -> bool:
    """True if the position that a witness gives may be within an epoch: the bar of an evaluation is too short."""
    epochs, steps = found.get("epochs"), found.get("steps")
    return not epochs or not steps or epochs * (number(within.says.get("epoch_steps")) or 0) >= steps


def reported_metrics(newest: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the metrics among the newest values, without counters and texts."""
    return {
        name: value
        for name, value in newest.items()
        if name not in NOT_METRICS
        and (value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)))
    }


def with_agent_told_apart(numbers: Numbers, own: Heartbeat | None) -> Numbers:
    """Return ``numbers`` that credit the agent with whatever the training code does not report itself."""
    if own is None or not own.reported:
        return numbers
    seen = {name: "agent" for name, by in numbers.told_by.items() if by == REPORT and name not in own.reported}
    return replace(numbers, told_by={**numbers.told_by, **seen})


def with_facts(
    numbers: Numbers, own: Heartbeat | None, program: Heartbeat | None, printed: Mapping[str, Any]
) -> Numbers:
    """Add device, memory, data and checkpoint: from our heartbeat, else the program's, else as printed."""
    beat, device = own or program, text(printed.get("device"))
    facts = {name: getattr(beat, name) for name in ("device", "memory", "data", "checkpoint")} if beat else {}
    is_done = printed.get("done") is True or (beat is not None and beat.phase == "done")
    numbers = replace(numbers, beat=beat, done=is_done, **facts)
    if numbers.device.type is None and program is not None:
        numbers = replace(numbers, device=program.device)
    if numbers.device.type is None and device is not None:
        numbers = replace(numbers, device=DeviceReading(type=device.partition(":")[0]))
    return numbers
