"""A profile's own pattern is a grammar, and a bad one is refused in a sentence."""

from __future__ import annotations

import pytest

from mpstui.core.formats.grammars import Declared, LineGrammar, all_grammars
from mpstui.core.formats.reader import LogReader
from mpstui.core.model.errors import UsageError


def test_named_groups_become_a_point() -> None:
    def grammars() -> list[LineGrammar]:
        return [
            Declared(r"tick (?P<step>\d+) of (?P<steps>\d+) E=(?P<loss>[\d.]+) chk=(?P<val_loss>[\d.]+)"),
            *all_grammars(),
        ]

    reader = LogReader(grammars)
    (point,) = reader.feed(b"tick 7 of 9 E=0.5 chk=0.7\n")
    assert (point.counters.step, point.counters.steps, point.loss) == (7, 9, 0.5)
    assert point.eval_metrics == {"val_loss": 0.7}
    assert point.format == "declared"
    assert len(reader.feed(b"epoch 3 loss 0.4\n")) == 1


@pytest.mark.parametrize("pattern", ["(", "no groups", r"(?P<loss>(a+)+)x", "x" * 3000])
def test_a_bad_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(UsageError, match="pattern"):
        Declared(pattern)
