"""Numbers in sentences: ``Train loss 300 2.5000``, ``Reducing learning rate to 1e-4``.

One file for several kinds, since each is a single pattern and none belongs to one program.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ..names import NameScope, classify
from ..points import Counters, LineReading, Priority, as_float, parse_count
from . import Example, LineGrammar

_VALUE = r"(?P<value>-?\d[\d.]{0,24}(?:e[-+]?\d{1,3})?|nan|inf)"
_LOSS_STEP_VALUE = re.compile(
    r"(?i)(?P<name>(?:train(?:ing)? )?loss)[ :]{1,2}(?P<n>\d{1,12}) (?P<value>\d{1,9}\.\d{3,20}|nan|inf)(?= |\Z)"
)
_NAMED_BEHIND = re.compile(r" ([A-Z][A-Za-z_]{1,20}(?: [A-Z][A-Za-z_]{1,20}){0,2}):? (\d{1,9}\.\d{3,20})(?= |\Z)")
"""``Grad Norm 1.250000`` after the loss."""
_EVALUATED_AT = re.compile(
    r"(?i)(?P<name>(?:valid|validation|val|test|eval) loss) (?P<n>\d{1,12}): {1,4}"
    r"(?P<value>\d{1,9}\.\d{3,20}|nan|inf)\Z"
)
"""``Validation loss 500:  0.98``: the step within the name; a single digit may instead number one of several losses."""
_RATE = r"(\d[\d.]{0,24}(?:[eE][-+]?\d{1,3})?)"
_RATE_CHANGE = re.compile(
    rf"(?i)\b(?:learning rate|lr)\b[^\d\n]{{0,24}}{_RATE}\s{{0,4}}(?:->|=>|→|to)\s{{0,4}}{_RATE}"
    rf"|\blearning rate of group 0 to {_RATE}"
    rf"|(?:reduc|adjust|set|decreas|lower|updat|chang|drop)\w{{0,5}} (?:the )?(?:learning rate|lr) to {_RATE}"
)
_REACHED = re.compile(
    r"Epoch (\d{1,9}), global step (\d{1,12}): '(?P<name>[\w./ \x2d]{1,60})' reached "
    r"(?P<value>-?\d[\d.]{0,24}(?:e[-+]?\d{1,3})?)(?= \(best)"
)
"""The metric that Lightning kept a checkpoint for; often no other line has it."""
_OVER_EPISODES = re.compile(
    r"(?i)(?P<data>eval(?:uation)?|test) (?:over|on|for) \d{1,6} episodes: "
    r"(?P<value>-?\d{1,12}(?:\.\d{1,20})?)\Z"
)
"""The reward of an agent, as printed by TD3 and its descendants."""
_RUN_SUMMARY = re.compile(r"global_step = (\d{1,12}), average loss = ")
"""The last line of the examples of transformers: its loss is the mean over the run, so it is not read."""
_PLANNED = re.compile(
    r"(?i)(?:\bfor|\btrain(?:ing)?|×|\bx|\*|=|:|\bmax|\btotal(?: of)?|\bto|->|\()\s{0,4}(?P<n>\d[\d,]{0,15})\s{1,4}"
    r"(?:(?:training|train|total|optimi[sz]ation|optimizer|meta) )?"
    r"(?P<what>epochs|epoch\(s\)|epochen|époques|épocas|épochs|steps|iterations|iters|updates|轮|エポック|에폭)"
    r"(?![\w/]|:\s?\d|=\d| (?:per|in each|in an) epoch)"
)
_PLANNED_UNTIL = re.compile(
    r"(?i)(?:->|→|\bto|\buntil|\btill)\s{1,4}(?P<what>steps?|iterations?|iters?|epochs?)\s{1,4}(?P<n>\d[\d,]{0,15})(?![\w.])"
)
_BATCHES = re.compile(
    r"(?i)\btrain(?:ing)?\b[^\d\n]{0,40}\bfor (?P<n>\d[\d,]{0,15}) (?P<what>(?:mini-?)?batches)\b"
    r"(?!\s(?:per|in|of|an|each|every)\b)"
)
"""``Training model for 200 batches``: without epochs, batches are steps."""
_TOTAL = re.compile(
    r"(?i)(?:^(?:scheduled|total|planned|max(?:imum)?|number of|num(?= steps = )) (?:train(?:ing)? )?"
    r"(?P<what>epochs|steps|iterations)\s{0,4}[:=]\s{0,4}(?P<n>\d{1,9})(?!\s?/\s?\d)"
    r"|(?P<count>\d{1,9}) (?:max(?:imum)?|total) (?P<of>epochs|steps|iterations))(?![\w.])"
)
_MAX_EPOCHS = re.compile(r"(?:Engine run starting with |Trainer\.fit`? stopped: `?)max_epochs=(\d{2,9}|[2-9])(?=\.|`)")
"""Printed by Ignite at its start (and for each evaluation, with one epoch), and by Lightning at its end."""
_OPTION = re.compile(
    r".{0,400}?\.py\s.{0,400}?(?<=\s)--(?:num[_-]train[_-]|num[_-]|max[_-](?:train[_-])?|n[_-])?"
    r"(?P<what>epochs|steps|iters|iterations)[ =](?P<n>\d{1,9})(?![\w.,])"
)
"""An option in a command line that a program prints."""
_NOT_A_PLAN = re.compile(
    r"(?i)\b(?:every|after|patience|warm.?up|last|sav(?:e|ed|ing)|log|(?:eval|validat|infer)\w{0,8}|testing|remain\w{0,3}|accum\w{0,10}|took|best|resum\w{0,3}|skip\w{0,4}|completed|finished|performed)\b|loss"
)
_LONGEST_PLAN = 240
_NEEDLES = (
    "oss |oss: |OSS |ost |core at|earning rate|lr |LR |pisode|poch|POCH|poca|poque|step|iter|updates|batches|轮|"
    "エポック|에폭"
)


class Sentences(LineGrammar):
    """A loss after its step, a new learning rate, the end of a run, the planned epochs or steps."""

    name = "sentence"
    priority = Priority.SENTENCE
    needles = tuple(_NEEDLES.split("|"))
    examples = (
        Example("Train loss 300 2.5000 Grad Norm 1.2\n", 2.5, step=300),
        Example("Train loss 300 2.5000 Grad Norm 1.250000 0.09s/it\n", 2.5, step=300),
        Example(
            "Epoch 1 loss: 1.5\nAdjusting learning rate of group 0 to 1.0000e-04.\nEpoch 2 loss: 1.4\n",
            1.4,
            losses=2,
            epoch=2,
            learning_rate=1e-4,
            format="key-value",
        ),
        Example("global_step = 2490, average loss = 0.25\n", losses=0, step=2490, format="key-value"),
        Example(
            "Scheduled epochs: 3 (epochs + cooldown). LR stepped per epoch.\nEpoch 0 loss: 1.5\n",
            1.5,
            1,
            0,
            3,
            format="key-value",
        ),
        Example(
            "Training model for 200 batches (batch_size=1)...\nstep 3 loss: 1.5\n",
            1.5,
            step=3,
            steps=200,
            format="key-value",
        ),
        Example("Starting training for 100 epochs\nEpoch 1 loss: 1.5\n", 1.5, epoch=1, epochs=100, format="key-value"),
    )

    def __init__(self) -> None:
        self._step = -1
        """The step of the newest loss."""

    def read(self, line: str) -> Sequence[LineReading] | None:
        reading = self._loss(line)
        if reading is None and (change := _RATE_CHANGE.search(line[:400])):
            reading = LineReading(self.name, learning_rate=as_float(change[2] or change[3] or change[4]))
        if reading is None and (summary := _RUN_SUMMARY.search(line, 0, 80)):
            reading = LineReading(self.name, Counters(step=parse_count(summary[1])))
        if reading is None and (at := _EVALUATED_AT.match(line)) and (len(at["n"]) > 1 or int(at["n"]) == self._step):
            reading = LineReading.evaluation(self.name, {at["name"]: float(at["value"])})
        if reading is None and (got := _OVER_EPISODES.search(line, 0, 200)):
            reading = LineReading.evaluation(self.name, {f"{got['data']} reward": float(got["value"])})
        if reading is None and (reached := _REACHED.match(line)):
            evaluated = {reached["name"]: float(reached["value"])}
            reading = LineReading.evaluation(self.name, evaluated) if _is_of_evaluation(reached["name"]) else None
        reading = reading or self._plan(line)
        return None if reading is None else (reading,)

    def _loss(self, line: str) -> LineReading | None:
        """Read a loss whose step is between its name and its value."""
        match = _LOSS_STEP_VALUE.match(line)
        value = None if match is None else as_float(match["value"])
        if match is None or value is None:
            return None
        self._step = int(match["n"])
        reading = LineReading.training(self.name, Counters(step=self._step), match["name"], value)
        behind = {name: float(text) for name, text in _NAMED_BEHIND.findall(line, match.end())}
        certain = classify(match["name"]).scope is NameScope.TRAIN
        return replace(reading, metrics={**reading.metrics, **behind}, certain=certain)

    def _plan(self, line: str) -> LineReading | None:
        totals = list(_TOTAL.finditer(line[:_LONGEST_PLAN]))
        found = [(total["what"] or total["of"], total["n"] or total["count"]) for total in totals]
        if ".py " in line and " --" in line and (option := _OPTION.match(line)):
            found.append((option["what"], option["n"]))
        if "max_epochs=" in line and (most := _MAX_EPOCHS.search(line)):
            found.append(("epochs", most[1]))
        if not found and len(line) <= _LONGEST_PLAN and not _NOT_A_PLAN.search(line):
            planned = [*_PLANNED.finditer(line), *_PLANNED_UNTIL.finditer(line)]
            planned += _BATCHES.finditer(line) if not planned and "poch" not in line else ()
            found = [(match["what"], match["n"]) for match in planned]
        counters = Counters()
        for what, n in found:
            of_epochs = what.lower()[:2] in ("ep", "ép", "轮", "エポ", "에폭")
            counters = counters._replace(**{"epochs" if of_epochs else "steps": parse_count(n)})
        name = "total steps" if any("total" in total.group().lower() for total in totals) else ""
        return None if counters == Counters() else LineReading(self.name, counters, plan=True, steps_name=name)


def _is_of_evaluation(name: str) -> bool:
    return classify(name).scope is NameScope.EVAL


GRAMMAR = Sentences
