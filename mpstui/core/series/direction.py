"""Which way a metric gets better, told from its name; most names say it, and of the others nothing is claimed."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..model.snapshot import SeriesView


class Better(StrEnum):
    """The direction in which a metric gets better."""

    LOWER = "lower"
    HIGHER = "higher"


_LOWER = re.compile(
    r"loss(es)?|err(ors?)?|perplexity|ppl|r?mae|r?msl?e|s?mape|[wct]er|[fk]id|nll|bp[bcd]|ece|eer|b?ce|xent|cross"
    r"|crossentropy|logloss|brier|lpips|epe|kld?|divergence|regret|\w+loss"
)
_HIGHER = re.compile(
    r"accs?|accuracy|accuracies|auc|auroc|auprc|f[12]|fscore|m?ap|precision|recall|(sacre)?bleu|chrf|rouge|meteor|cider"
    r"|m?iou|giou|dice|psnr|ssim|r2|rewards?|returns?|scores?|mcc|kappa|spearmanr?|pearsonr?|ndcg|mrr|hits?|elbo"
    r"|likelihood|success|sensitivity|specificity|top[15]|correct"
)
_BESIDE = re.compile(r"scaler?|weights?|coef|coefficient|factor|time|seconds|lr|count|std|var")
"""A number beside a metric rather than the metric: ``loss_scale``, ``loss weight``."""
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_LONG_WORDS = re.compile(r"[A-Za-z]+\d*")


def better(name: str) -> Better | None:
    """Which way is better, by the last word of the name that tells it: ``val_loss``, ``top1_acc``, ``mAP50(B)``.

    None: nobody knows (``lr``, ``grad_norm``), or it is a number beside a metric (``loss_scale``).
    """
    words = [word.lower() for word in _WORDS.findall(name)]
    if any(map(_BESIDE.fullmatch, words)):
        return None
    found = None
    for long in _LONG_WORDS.findall(name):
        whole = long.lower()
        # Names that mix cases are one word (mAP50) or several (valLoss): the whole one is asked first.
        for word in (whole, whole.rstrip("0123456789"), *map(str.lower, _WORDS.findall(long))):
            if _LOWER.fullmatch(word) or _HIGHER.fullmatch(word):
                found = Better.LOWER if _LOWER.fullmatch(word) else Better.HIGHER
                break
    return Better.LOWER if "negative" in words else found


class Best(NamedTuple):
    """The best value of a curve, and the x (the step, mostly) at which it was measured first."""

    value: float
    at: float | None
    """None: unknown."""
    way: Better


def best_point(view: SeriesView, name: str = "") -> Best | None:
    """None where nobody knows which way is better, or nothing finite was measured.

    Args:
        name: what tells the direction; the curve's own by default.
    """
    way = better(name or view.name)
    value, at = (view.maximum, view.maximum_at) if way is Better.HIGHER else (view.minimum, view.minimum_at)
    return None if way is None or value is None else Best(value, at, way)


def best(view: SeriesView) -> float | None:
    """The value of :func:`best_point`."""
    found = best_point(view)
    return None if found is None else found.value
