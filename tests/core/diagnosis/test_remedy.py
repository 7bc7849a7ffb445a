"""Applying remedies to a launch."""

from __future__ import annotations

import pytest

from mpstui.core.diagnosis.model import ArgumentChange, Remedy, apply_remedy
from mpstui.core.diagnosis.rules import all_rules, rule

ROLES = {
    "batch_size": "train-batch",
    "gradient_accumulation": "accumulate",
    "workers": "num_workers",
    "persistent_workers": "persistent",
    "precision": "precision",
}


def test_out_of_memory_halves_the_batch_and_doubles_accumulation() -> None:
    arguments = {"train-batch": 64, "epochs": 3}
    changed = apply_remedy(rule("mps_oom").remedy, arguments, ROLES, {})
    assert changed.arguments == {"train-batch": 32, "epochs": 3, "accumulate": 2}
    assert changed.applied == ("train-batch 64 -> 32", "accumulate 1 -> 2")
    assert arguments == {"train-batch": 64, "epochs": 3}


@pytest.mark.parametrize(("before", "after"), [(2, 1), ("64", "32"), (7, 3)])
def test_scaling_keeps_the_kind_of_value_and_rounds_down(before: object, after: object) -> None:
    remedy = Remedy(text="", args=(ArgumentChange("batch_size", "scale", 0.5),))
    assert apply_remedy(remedy, {"train-batch": before}, ROLES, {}).arguments["train-batch"] == after


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"train-batch": 1}, "train-batch is 1 already"),
        ({"train-batch": "auto"}, "train-batch has no whole number to scale"),
        ({"train-batch": True}, "train-batch has no whole number to scale"),
        ({}, "train-batch has no whole number to scale"),
    ],
)
def test_what_cannot_be_scaled_is_skipped_with_the_reason(arguments: dict[str, object], reason: str) -> None:
    remedy = Remedy(text="", args=(ArgumentChange("batch_size", "scale", 0.5),))
    changed = apply_remedy(remedy, arguments, ROLES, {})
    assert changed.skipped == (reason,)
    assert changed.arguments == arguments


def test_an_unmapped_role_is_named() -> None:
    changed = apply_remedy(rule("mps_oom").remedy, {"bs": 4}, {}, {})
    assert changed.applied == ()
    assert changed.skipped == ()
    assert changed.unnamed == ("batch_size", "gradient_accumulation")


def test_an_argument_that_is_to_go_and_was_never_given_is_no_news() -> None:
    changed = apply_remedy(rule("dl_spawn_guard").remedy, {"num_workers": 4}, ROLES, {})
    assert (changed.applied, changed.skipped) == (("num_workers = 0",), ())


def test_no_workers_also_drops_what_needs_workers() -> None:
    changed = apply_remedy(rule("dl_spawn_guard").remedy, {"num_workers": 4, "persistent": True}, ROLES, {})
    assert changed.arguments == {"num_workers": 0}
    assert changed.applied == ("num_workers = 0", "persistent removed")


def test_variables_are_set_and_unset() -> None:
    env = {"PYTORCH_MPS_HIGH_WATERMARK_RATIO": "0.7", "HOME": "/h"}
    changed = apply_remedy(rule("mps_watermark_invalid").remedy, {}, {}, env)
    assert changed.env == {"HOME": "/h"}
    assert changed.applied == ("PYTORCH_MPS_HIGH_WATERMARK_RATIO unset",)
    fallback = apply_remedy(rule("mps_op_missing").remedy, {}, {}, {})
    assert fallback.env == {"PYTORCH_ENABLE_MPS_FALLBACK": "1"}


def test_a_device_is_passed_on() -> None:
    assert apply_remedy(rule("mps_float64").remedy, {}, {}, {}).device == "cpu"


def test_what_can_harm_says_so() -> None:
    risky = {one.id for one in all_rules() if one.remedy.risk}
    assert risky == {"weights_only"}
    assert "any code" in (rule("weights_only").remedy.risk or "")


def test_no_remedy_sets_the_dangerous_variables() -> None:
    for one in all_rules():
        assert "KMP_DUPLICATE_LIB_OK" not in one.remedy.env
        assert one.remedy.env.get("PYTORCH_MPS_HIGH_WATERMARK_RATIO") is None


def test_only_some_remedies_can_be_applied_by_a_launcher() -> None:
    assert rule("mps_oom").remedy.can_be_applied
    assert not rule("shape_bug").remedy.can_be_applied
