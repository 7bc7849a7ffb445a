"""Whether a metric improves by falling or rising, judged by its name; most names tell, for others it is unknown."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..model.snapshot import SeriesView


class Better(StrEnum):
    """The direction in which a metric improves."""

    LOWER = "lower"
    HIGHER = "higher"


def _these(words: str) -> frozenset[str]:
    return frozenset(words.split())


_LOWER = _these(
    "loss losses err error errors perplexity ppl mae rmae mse rmse msle rmsle mape smape wer cer ter fid kid nll bpb"
    " cost costs rse rae bpc bpd ece eer ce bce xent cross crossentropy logloss brier lpips epe kl kld"
    " divergence regret mpjpe mpjve mr medae mase nae hd95 chamfer crps mcd dcf ade fde nrmse wape wmape rmsd absrel"
    " sqrel emd dtw assd hausdorff silog aee mpve nme fvd ergas hter apcer bpcer acer rmsse pinball misclassification"
    " levenshtein fpr fnr far frr fnmr residual residuals violation violations forgetting makespan collision outlier"
)
"""Plus every word that ends in ``loss``."""
_HIGHER = _these(
    "acc accs accuracy accuracies auc auroc auprc f1 f2 fscore ap map precision recall bleu sacrebleu chrf rouge meteor"
    " cider iou miou giou dice psnr ssim r2 rew reward rewards return returns score scores mcc kappa spearman spearmanr"
    " corr correlation pearson pearsonr ndcg mrr hit hits hr likelihood success sensitivity specificity top1 top5"
    " correct logp logprob loglik jaccard pck oks sdr sisdr sisnr pesq stoi em exact match dsc gauc nmi ari qwk prec"
    " ret roc accu accy rsum hitratio hitrate cmc uar aupr ppv npv tpr tnr sens fwiou fwavacc mpa iu miu msssim snr"
    " segsnr vif uiqm plcc srcc krcc pcc ccc lcc dnsmos spice cindex concordance silhouette purity modularity idf1 mota"
    " hota winrate qed sharpe rankic icir fbeta fmeasure maxf meanf smeasure emeasure pckh"
)
_BESIDE = _these("scale scaler weight weights coef coefficient factor time seconds lr count std var")
"""Words that mark a number belonging to a metric rather than the metric itself: ``loss_scale``, ``loss weight``."""
_OF_RIVALS = _these("actor critic policy generator discriminator gen disc gan adv adversarial g d")
"""Networks trained against each other: the loss of one depends on the other, so its lowest value is not the best."""
_HIT_RATE = re.compile(
    r"(?i)\brank-?\d{1,3}\b|reciprocal[\s_]?rank\b|(?:\b|_)top[\s_-]?\d{1,3}\b"
    r"|(?:\b|[_\d])(?:[itva]?r|p|h|s|ar|pass|rank|maj|cons)@\d{1,4}\b"
    r"|(?:\b|_)(?:[itav]2[itav]|img|image|txt|text|video|audio)[\s_/.-]r(?:[\s_]mean|\d{1,3})\b|(?:\b|_)r_mean\b"
    r"|(?:\b|_)r(?:5|[1-9]0|100)\b|(?:\b|_)mar_(?:\d{1,3}|small|medium|large)\b"
)
"""Shares of queries with a match among the first: ``Rank-5``, ``image_to_text_R@5``, ``i2t_r5``, ``R10``, ``pass@1``;
also ``mar_100`` of detectors. ``R1`` alone may be a penalty."""
_MEAN_RANK = re.compile(r"(?i)(?:\b|_)(?:mean|median)[\s_]rank\b|(?:\b|_)(?:(?-i:M[nd]R)|(?:mean|med|median)r)\b")
"""``median_rank``, ``MedR``, ``MnR``: the place at which the match was found."""
_F_SCORE = re.compile(r"(?i)\b(?:dev|val|valid|validation|eval|test)[\s_/.-]+f\b")
"""``Dev f`` (the F-score, printed beside p and r); ``f`` alone may be any function."""
_NORMS = _these("l1 l2 h1 linf")
"""Norms that measure the distance to the target: ``16_l2``, ``rel l1``."""
_OF_WEIGHTS = _these("reg regularization regularizer penalty decay lambda grad grads gradient norm norms param params")
"""Next to a norm: a quantity that is kept small or only watched, not an error."""
_RELATIVE_ERROR = re.compile(r"(?i)(?:\b|_)(?:abs|sq)[\s_]rel\b")
"""Relative errors of depth estimation: ``abs_rel``, ``sq_rel``."""
_EQUAL_ERROR_RATE = re.compile(r"\b[TV]EER\b")
"""``TEER`` and ``VEER``: the equal error rate in training and validation; in lower case they are words."""
_PER_UNIT = re.compile(
    r"(?i)(?:\b|_)(?:bits|nats)(?:[\s_-]per[\s_-]|\s?/\s?)(?:sub)?(?:dim|dimension|pixel|char|character|byte)s?(?:\b|_)"
)
"""How many bits describe a part of the data: ``bits/dim``."""
_MISSED = re.compile(r"(?i)(?:\b|_)miss[\s_]?rate(?:\b|_)")
_HIGHER_OF_TWO_WORDS = re.compile(
    r"(?i)(?:\b|_)(?:explained[\s_]variance|win[\s_]rate|c[\s_-]index|[fse][\s_-]measure)(?:\b|_)|\br(?:\^2|²)"
)
"""Measures none of whose words is one by itself."""
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_LONG_WORDS = re.compile(r"[A-Za-z]+\d*")
_RISING = (_HIT_RATE, _F_SCORE, _HIGHER_OF_TWO_WORDS)
_FALLING = (_MEAN_RANK, _EQUAL_ERROR_RATE, _RELATIVE_ERROR, _PER_UNIT, _MISSED)


@lru_cache(1024)
def better(name: str) -> Better | None:
    """Return the direction given by the last telling word of the name: ``val_loss``, ``top1_acc``, ``mAP50(B)``.

    None if unknown (``lr``, ``grad_norm``), or if the number only belongs to a metric (``loss_scale``).
    """
    words = [word.lower() for word in _WORDS.findall(name)]
    if not _BESIDE.isdisjoint(words):
        return None
    found = None
    for long in _LONG_WORDS.findall(name):
        whole = long.lower()
        # A name in mixed case is one word (mAP50) or several (valLoss): the whole is tried first.
        for word in (whole, whole.rstrip("0123456789"), *map(str.lower, _WORDS.findall(long))):
            is_lower = (word in _LOWER or word.endswith("loss")) and long != "mR"
            if is_lower or word in _HIGHER or long == "mR":  # the mean recall; the mean rank is written MR
                found = Better.LOWER if is_lower else Better.HIGHER
                break
    if found is None and any(one.search(name) for one in _RISING):
        return Better.HIGHER
    if found is None and any(one.search(name) for one in _FALLING):
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
    """None if unknown."""
    way: Better


def best_point(view: SeriesView, name: str = "") -> Best | None:
    """Return the best point of a curve; None if the direction is unknown or no finite value was measured.

    Args:
        name: the name that decides the direction; by default the curve's own.
    """
    way = better(name or view.name)
    value, at = (view.maximum, view.maximum_at) if way is Better.HIGHER else (view.minimum, view.minimum_at)
    return None if way is None or value is None else Best(value, at, way)


def best(view: SeriesView) -> float | None:
    """Return the value of :func:`best_point`, None if there is none."""
    found = best_point(view)
    return None if found is None else found.value
