"""The general reader: any ``name value`` notation, as in home-made print statements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..assemble import assemble, sums_up
from ..groups import label_of
from ..notices import heads_conlleval
from ..pairs import pairs_of
from ..points import LineReading, Priority
from ..prose import is_prose
from ..spelling import respelt
from . import Example, LineGrammar


class General(LineGrammar):
    """Key-value lines of any program."""

    name = "key-value"
    priority = Priority.GENERAL
    examples = (
        Example("epoch 3/20 step 120/390 loss 0.53 lr 0.001\n", 0.53, 1, 3, 20, 120, 390, 0.001),
        Example("Époque 3/9 — perte : 0.5 — val_loss : 0.7\n", 0.5, epoch=3, epochs=9),
    )

    def read(self, line: str) -> Sequence[LineReading] | None:
        spelt = respelt(line)
        pairs = pairs_of(spelt)
        if not pairs or is_prose(line) or sums_up(pairs) or heads_conlleval(line):
            return None
        reading, label = assemble(self.name, spelt, pairs), label_of(spelt)
        if reading is None and label is not None:  # ``[seen] acc 0.5``: a record without its label
            reading = assemble(self.name, body := spelt[label.end :], pairs_of(body))
        if reading is not None and label is not None and not reading.bare:
            reading = replace(reading, group=label.text)
        return None if reading is None else (reading,)


GRAMMAR = General
