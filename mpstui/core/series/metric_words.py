"""What the name of a metric tells: what it measures, and where it belongs in a list."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

_COUNTS = ("epoch", "epochs", "step", "steps", "epoch_step", "epoch_steps", "first_epoch", "begun_epoch")
_NO_COUNTS = ("time", "attempt", "rank", "nonfinite", "schema", "device", "done", "printed_step", "planned_steps")
NOT_METRICS = frozenset((*_COUNTS, *_NO_COUNTS))
"""Fields of a metrics record that are not metrics."""
_VALIDATION_WORDS = frozenset(("val", "valid", "validation"))
_EVALUATION_WORDS = _VALIDATION_WORDS | {"eval", "test", "dev"}
_BETWEEN_WORDS = re.compile(r"[\s_/.-]+")
_UNSAID = frozenset(("train", "training", "avg", "average", "mean", "set", "epoch"))  # Lightning: ``val_loss_epoch``
_SPELLINGS = {"accuracy": "acc"}
_OF_PACE = frozenset(
    (
        *("runtime", "time", "elapsed", "duration", "seconds", "secs", "eta", "fps", "sps", "throughput", "flos"),
        *("flops", "mfu", "memory", "mem", "vram", "rss"),
    )
)
_CRITERIA = frozenset(
    ("nll", "ce", "bce", "xent", "crossentropy", "cross entropy", "binary crossentropy", "binary cross entropy")
)
"""Names of training criteria, all for classifiers. ``mse`` is not one: it is also measured on models that minimize
something else."""
_NUMBER = re.compile(r"(\d+)")
NAMES_REMEMBERED, _SETS_REMEMBERED = 1 << 14, 1 << 8
"""Cache sizes: names are looked up again for each frame."""


@lru_cache(NAMES_REMEMBERED)
def reading_order(name: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key for natural order, ``layer2`` before ``layer10``: a longer number is larger."""
    return tuple((len(part) if place % 2 else 0, part) for place, part in enumerate(_NUMBER.split(name)))


@lru_cache(NAMES_REMEMBERED)
def measured(name: str) -> str:
    """Return what a metric measures, on any data: the same for ``Val Loss``, ``eval/loss`` and ``loss``."""
    words = (_SPELLINGS.get(word, word) for word in _BETWEEN_WORDS.split(name.lower()))
    return " ".join(word for word in words if word not in _EVALUATION_WORDS | _UNSAID) or name


@lru_cache(NAMES_REMEMBERED)
def respelt(name: str) -> str:
    """Return one spelling for ``D loss`` (as printed), ``d_loss`` (the variable) and ``Loss/D`` (in TensorBoard)."""
    words = (_SPELLINGS.get(word, word) for word in _BETWEEN_WORDS.split(name.lower()) if word)
    return " ".join(sorted("val" if word in _VALIDATION_WORDS else word for word in words)) or name


def names_a_criterion(name: str) -> bool:
    """True if a metric is named after the training criterion: ``val_nll``, ``eval/ce_loss``."""
    return measured(name).removesuffix(" loss") in _CRITERIA


@lru_cache(_SETS_REMEMBERED)
def drawn_over(curves: tuple[tuple[str, bool, str], ...]) -> Mapping[str, str]:
    """Map each validation curve that is drawn over a training curve to the name of that curve.

    At most one is drawn over each; a curve with a different axis is drawn alone. If no validation curve is called loss,
    the only one named after its criterion (``val_nll``) is drawn over the loss.

    Args:
        curves: for each its name, whether it was measured in an evaluation, and its axis.
    """
    trained: dict[tuple[str, str], str] = {}
    for name, evaluation, axis in curves:
        if not evaluation:
            trained.setdefault((measured(name), axis), name)
    found: dict[str, str] = {}
    for name, evaluation, axis in curves:
        below = trained.pop((measured(name), axis), None) if evaluation else None
        if below is not None:
            found[name] = below
    criteria = [(name, axis) for name, evaluation, axis in curves if evaluation and names_a_criterion(name)]
    if len(criteria) == 1 and criteria[0][0] not in found:
        below = trained.get(("loss", criteria[0][1]))
        found.update({criteria[0][0]: below} if below is not None else {})
    return found


@lru_cache(NAMES_REMEMBERED)
def is_of_pace(name: str) -> bool:
    """True if a metric tells the speed, duration or resource use of a training, not its quality: ``eval_runtime``,
    ``gpu_mem``. False for every name that ends in ``loss``."""
    words = _BETWEEN_WORDS.split(name.lower())
    if words[-1] == "loss":
        return False
    return not _OF_PACE.isdisjoint(words) or ("per" in words and ("second" in words or "sec" in words))


def is_evaluation(name: str) -> bool:
    """True if the name says that the metric was measured on validation or test data."""
    return not _EVALUATION_WORDS.isdisjoint(_BETWEEN_WORDS.split(name.lower()))
