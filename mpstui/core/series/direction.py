"""Which way a metric gets better, judging by its name; most names say it, and for the others nothing is claimed."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..model.snapshot import SeriesView


class Better(StrEnum):
    """The direction in which a metric gets better."""

    LOWER = "lower"
    HIGHER = "higher"


def _these(words: str) -> frozenset[str]:
    return frozenset(words.split())


_LOWER = _these(
    "loss losses err error errors perplexity ppl mae rmae mse rmse msle rmsle mape smape wer cer ter fid kid nll bpb"
    " cost costs rse rae bpc bpd ece eer ce bce xent cross crossentropy logloss brier lpips epe kl kld"
    " divergence regret mpjpe mpjve mr medae mase nae hd95 chamfer crps mcd dcf ade fde nrmse wape wmape rmsd absrel"
    " sqrel emd dtw assd"
)
"""And whatever ends in ``loss``."""
_HIGHER = _these(
    "acc accs accuracy accuracies auc auroc auprc f1 f2 fscore ap map precision recall bleu sacrebleu chrf rouge meteor"
    " cider iou miou giou dice psnr ssim r2 rew reward rewards return returns score scores mcc kappa spearman spearmanr"
    " corr correlation pearson pearsonr ndcg mrr hit hits hr likelihood success sensitivity specificity top1 top5"
    " correct logp logprob loglik jaccard pck oks sdr sisdr sisnr pesq stoi em exact match dsc gauc nmi ari qwk prec"
    " ret roc accu accy"
)
_BESIDE = _these("scale scaler weight weights coef coefficient factor time seconds lr count std var")
"""Words for a number beside a metric rather than the metric: ``loss_scale``, ``loss weight``."""
_OF_RIVALS = _these("actor critic policy generator discriminator gen disc gan adv adversarial g d")
"""Whose loss falls and rises with that of another network: the lowest is not the best."""
_HIT_RATE = re.compile(r"(?i)\brank-?\d{1,3}\b|(?:\b|_)reciprocal[\s_]rank\b")
"""``Rank-5``, of retrieval: the share of queries with a match among so many."""
_MEAN_RANK = re.compile(r"(?i)(?:\b|_)(?:mean|median)[\s_]rank\b")
_F_SCORE = re.compile(r"(?i)\b(?:dev|val|valid|validation|eval|test)[\s_/.-]+f\b")
"""``Dev f``, beside p and r; alone an f is any function."""
_NORMS = _these("l1 l2 h1 linf")
"""By which the distance to what is right is measured: ``16_l2``, ``rel l1``."""
_OF_WEIGHTS = _these("reg regularization regularizer penalty decay lambda grad grads gradient norm norms param params")
"""Beside a norm: what is kept small, or only watched."""
_RELATIVE_ERROR = re.compile(r"(?i)(?:\b|_)(?:abs|sq)[\s_]rel\b")
"""Of a depth."""
_EQUAL_ERROR_RATE = re.compile(r"\b[TV]EER\b")
"""That of training or of the validation; in small letters it is a word."""
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_LONG_WORDS = re.compile(r"[A-Za-z]+\d*")


@lru_cache(1024)
def better(name: str) -> Better | None:
    """Which way is better, by the last word of the name that says so: ``val_loss``, ``top1_acc``, ``mAP50(B)``.

    None: unknown (``lr``, ``grad_norm``), or it is a number beside a metric (``loss_scale``).
    """
    words = [word.lower() for word in _WORDS.findall(name)]
    if not _BESIDE.isdisjoint(words):
        return None
    found = None
    for long in _LONG_WORDS.findall(name):
        whole = long.lower()
        # Names in mixed case are one word (mAP50) or several (valLoss): the whole one is tried first.
        for word in (whole, whole.rstrip("0123456789"), *map(str.lower, _WORDS.findall(long))):
            is_lower = word in _LOWER or word.endswith("loss")
            if is_lower or word in _HIGHER:
                found = Better.LOWER if is_lower else Better.HIGHER
                break
    if found is None and (_HIT_RATE.search(name) or _F_SCORE.search(name)) is not None:
        return Better.HIGHER
    if found is None and any(one.search(name) for one in (_MEAN_RANK, _EQUAL_ERROR_RATE, _RELATIVE_ERROR)):
        return Better.LOWER
    if found is None and _OF_WEIGHTS.isdisjoint(words) and not _NORMS.isdisjoint(_LONG_WORDS.findall(name.lower())):
        return Better.LOWER
    if "loss" in name.lower() and not _OF_RIVALS.isdisjoint(words):
        return None
    return Better.LOWER if "negative" in words else found


class Best(NamedTuple):
    """The best value of a curve, and the x (usually the step) at which it was first measured."""

    value: float
    at: float | None
    """None: unknown."""
    way: Better


def best_point(view: SeriesView, name: str = "") -> Best | None:
    """None if it is unknown which way is better, or nothing finite was measured.

    Args:
        name: decides the direction; the curve's own by default.
    """
    way = better(name or view.name)
    value, at = (view.maximum, view.maximum_at) if way is Better.HIGHER else (view.minimum, view.minimum_at)
    return None if way is None or value is None else Best(value, at, way)


def best(view: SeriesView) -> float | None:
    """The value of :func:`best_point`."""
    found = best_point(view)
    return None if found is None else found.value
