"""Which way a metric gets better."""

from __future__ import annotations

import pytest

from mpstui.core.series.direction import Better, better


@pytest.mark.parametrize(
    "name",
    [
        *(
            "loss",
            "val_loss",
            "Val Loss",
            "trainLoss",
            "eval/perplexity",
            "WER",
            "rmse",
            "top1_error",
            "word error rate",
        ),
        *(
            "train/box_loss",
            "negative_log_likelihood",
            "loss (agent)",
            "cross-entropy",
            "policy_loss",
            "L1Loss",
            "test_err",
        ),
        *("reward_loss", "valid_ppl", "kl_divergence", "mae_val", "bits/bpb"),
    ],
)
def test_less_is_better(name: str) -> None:
    assert better(name) is Better.LOWER


@pytest.mark.parametrize(
    "name",
    [
        *(
            "acc",
            "val_accuracy",
            "evalAccuracy",
            "metrics/mAP50(B)",
            "mAP50-95",
            "top1",
            "acc@1",
            "F1",
            "macro f1-score",
        ),
        *("episode_reward", "BLEU-4", "rouge1", "r2", "AUC", "val/IoU", "psnr", "log_likelihood", "ep_return_mean"),
    ],
)
def test_more_is_better(name: str) -> None:
    assert better(name) is Better.HIGHER


@pytest.mark.parametrize(
    "name",
    [
        "lr",
        "grad_norm",
        "steps/s",
        "loss_scale",
        "loss weight",
        "epoch",
        "",
        "42",
        "temperature",
        "lossless",
        "map_time",
    ],
)
def test_of_what_says_nothing_nothing_is_claimed(name: str) -> None:
    assert better(name) is None
