"""Which way a metric gets better."""

from __future__ import annotations

import pytest

from mpstui.core.series.direction import Better, best, best_point, better
from mpstui.core.series.series import Points, Series


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
            "L1Loss",
            "test_err",
        ),
        *("reward_loss", "valid_ppl", "kl_divergence", "mae_val", "bits/bpb", "Error (MPJPE)", "Valid MR"),
        *("Mean rank", "test_mean_rank", "Median rank", "image_to_text_median_rank", "MedR", "t2v_MnR", "V2T/meanr"),
        "val avg_cost",
        "valid rse",
        *("EER", "VEER", "MinDCF", "minDCF(0.01)", "minADE", "val_fde"),
        *("16_l2", "H1", "rel_l1", "test L2", "val linf", "abs_rel", "eval/sq_rel", "nrmse", "Test WMAPE"),
        *("bits/dim", "val_bits_per_dim", "Test bits per character", "nats/dim", "test bpd", "l2 relative error"),
        *("Hausdorff distance", "FPR@95", "test/fpr95", "HTER", "val_nme", "miss_rate", "fvd", "PDE residual"),
    ],
)
def test_less_is_better(name: str) -> None:
    assert better(name) is Better.LOWER


@pytest.mark.parametrize("name", ["policy_loss", "Actor loss", "loss_G", "D loss", "train/critic_loss", "adv_loss"])
def test_the_loss_of_one_of_two_rivals_has_no_best(name: str) -> None:
    assert better(name) is None


@pytest.mark.parametrize(
    "name",
    [
        *(
            "acc",
            "Train_accy",
            "val_accu",
            "val_accuracy",
            "evalAccuracy",
            "metrics/mAP50(B)",
            "mAP50-95",
            "top1",
            "acc@1",
            "Valid Final Prec@1",
            "AverageEpRet",
            "F1",
            "macro f1-score",
        ),
        *("prec@1", "Mean reciprocal rank", "val_mean_reciprocal_rank", "MeanReciprocalRank", "HitRatio", "rsum"),
        *("image_to_text_R@1", "Eval text_to_image_R@10", "val r@5", "IR@1", "P@5", "H@10", "pass@8", "AR@100"),
        *(
            "i2t_r1",
            "val/t2v/R5",
            "txt_r_mean",
            "R10",
            "mR",
            "eval mR@20",
            "mar_100",
            "cmc1",
            "rank@1",
            "Top-1",
            "val top_5",
        ),
        *(
            "episode_reward",
            "rollout/ep_rew_mean",
            "BLEU-4",
            "rouge1",
            "r2",
            "AUC",
            "val/IoU",
            "psnr",
            "log_likelihood",
            "ep_return_mean",
            "logp(x)",
            "dev EM",
            "eval_exact_match",
            "Rank-20",
            "Test/rank1",
            "HR@10",
            "Dev f",
            "valid corr",
            "val_dsc",
            *("explained_variance", "Win rate", "C-index", "F-measure", "test R^2", "FWIoU", "Mean IU", "val_uar"),
            *("best_top1", "si-snr", "AUPR", "test PLCC", "MOTA", "test_ccc"),
        ),
    ],
)
def test_more_is_better(name: str) -> None:
    assert better(name) is Better.HIGHER


@pytest.mark.parametrize(
    "name",
    [
        *("lr", "R1", "lora_rank", "GPU@0", "top_k"),
        *("bits", "per dim", "miss", "index", "win", "measure", "rate", "variance", "num_bits"),
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
        "f",
        "time cost",
        "ELBO",
        "l2_reg",
        "grad_l2",
        "param l2 norm",
    ],
)
def test_of_what_says_nothing_nothing_is_claimed(name: str) -> None:
    assert better(name) is None


@pytest.mark.parametrize(
    ("name", "told"), [("val_loss", (1.0, 20.0, "lower")), ("val_accuracy", (3.0, 10.0, "higher")), ("lr", None)]
)
def test_the_best_value_and_its_step(name: str, told: tuple[float, float, str] | None) -> None:
    series = Series(name)
    series.extend(1, Points([10.0, 20.0, 30.0], [0.0] * 3, [0.0] * 3, [3.0, 1.0, 2.0]))
    assert best_point(series.view()) == told
    assert best(series.view()) == (told[0] if told else None)
