"""XGBoost, LightGBM and CatBoost.

``[10]\ttrain-rmse:0.5\teval-rmse:0.6``, ``[10]\ttraining's l2: 0.2``, ``10:\tlearn: 0.5``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ..names import NameScope, scope_of, words_of
from ..points import Counters, LineReading, Priority, as_float
from . import Example, LineGrammar

_HEAD = re.compile(r"(?:\[(\d{1,9})\]|(\d{1,9}):)\s{1,8}(?=[A-Za-z])")
_VALUE = re.compile(r"([A-Za-z][\w' @.:-]{0,60}?)\s?:\s?(-?\d[\d.]{0,24}(?:e[-+]?\d{1,3})?|nan|inf)(?=[\s(]|\Z)")
_KNOWN = re.compile(
    r"(?i)(?:^|[\s_'-])(?:rmse|rmsle|mae|mape|l1|l2|logloss|mlogloss|binary_logloss|multi_logloss|error|merror|auc|aucpr|binary_error|"
    r"multi_error|quantile|poisson|gamma|tweedie|huber|fair|ndcg|map|learn|test|cross_entropy)(?:@\d+)?$"
)
_NO_METRICS = ("best", "total", "remaining")
_RISING = re.compile(r"(?i)(?:auc|aucpr|ndcg|map)(?:@\d+)?$")


class Boosting(LineGrammar):
    """Rounds of gradient boosting; the loss is the first training metric that is not maximised (AUC, NDCG, MAP)."""

    name = "boosting"
    priority = Priority.SHARED
    needles = ("]\t", "] ", ":\t", ": ")
    examples = (
        Example("[0]\ttrain-rmse:0.6\teval-rmse:0.61\n[1]\ttrain-rmse:0.5\teval-rmse:0.52\n", 0.5, losses=2, step=1),
    )

    def __init__(self) -> None:
        self._round = -1

    def read(self, line: str) -> Sequence[LineReading] | None:
        head = _HEAD.match(line)
        matches = list(_VALUE.finditer(line, head.end())) if head is not None else []
        if head is None or not matches or matches[0].start() != head.end():
            return None
        values = [(match[1].strip(), as_float(match[2])) for match in matches]
        if not all(_KNOWN.search(name) for name, _ in values if name not in _NO_METRICS) or values[0][0] in _NO_METRICS:
            return None
        number = int(head[1] or head[2])
        before, self._round = self._round, max(number, self._round) if number > 1 else number
        if 1 < number <= before:
            return ()  # early stopping repeats the best round; only a first round starts another fit
        train: dict[str, float] = {}
        other: dict[str, float] = {}
        for name, value in values:
            is_train = name == "learn" or scope_of(words_of(name.replace("'s", ""))) is NameScope.TRAIN
            if value is not None and name != "best":
                (train if is_train else other)[name] = value
        name = next((n for n in train if not _RISING.search(n)), "")
        reading = LineReading(self.name, Counters(step=number), metrics=train, eval_metrics=other, certain=True)
        if name:
            reading = replace(reading, loss=train[name], loss_name=name, series=f"{name}@s")
        return (reading,)


GRAMMAR = Boosting
