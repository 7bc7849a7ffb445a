"""Applying remedies to a launch: what changes, what is asked, what would change nothing."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from mpstui.core.diagnosis.model import NO_WORKERS, SMALLER_BATCH, ArgumentChange, Remedy
from mpstui.core.diagnosis.remedy import KnownLaunch, RemediedLaunch, apply_remedy
from mpstui.core.diagnosis.rules import all_rules, rule

ROLES = {
    "batch_size": "train-batch",
    "gradient_accumulation": "accumulate",
    "workers": "num_workers",
    "persistent_workers": "persistent",
    "precision": "precision",
}
HIGH, FALLBACK = "PYTORCH_MPS_HIGH_WATERMARK_RATIO", "PYTORCH_ENABLE_MPS_FALLBACK"


def applied(
    rule_id: str,
    arguments: Mapping[str, object] = {},
    env: Mapping[str, str] = {},
    usual: Mapping[str, object] = {},
    device: str | None = None,
    roles: Mapping[str, str] = ROLES,
    may_be_mps: bool = True,
) -> RemediedLaunch:
    launch = KnownLaunch(arguments=arguments, roles=roles, usual=usual, env=env, device=device, may_be_mps=may_be_mps)
    return apply_remedy(rule(rule_id).remedy, launch)


def said(found: RemediedLaunch) -> list[str]:
    return [str(change) for change in found.changes]


def test_out_of_memory_halves_the_batch_and_doubles_accumulation() -> None:
    arguments = {"train-batch": 64, "epochs": 3, "accumulate": 1}
    changed = applied("mps_oom", arguments)
    assert changed.arguments == {"train-batch": 32, "epochs": 3, "accumulate": 2}
    assert said(changed) == ["train-batch 64 -> 32", "accumulate 1 -> 2"]
    assert changed.risks == []
    assert arguments == {"train-batch": 64, "epochs": 3, "accumulate": 1}


def test_what_was_not_given_is_scaled_from_what_the_program_takes() -> None:
    changed = applied("mps_oom", {}, usual={"batch_size": 64, "gradient_accumulation": 1})
    assert said(changed) == ["train-batch 64 -> 32", "accumulate 1 -> 2"]


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        ({}, ["train-batch", "accumulate"]),
        ({"accumulate": 2}, ["train-batch"]),
        ({"train-batch": 64}, ["accumulate"]),
    ],
)
def test_an_unknown_value_is_asked_for_and_the_known_half_is_left_alone(
    arguments: dict[str, object], asked: list[str]
) -> None:
    changed = applied("mps_oom", arguments)
    assert (changed.asks, changed.changes, changed.arguments) == (asked, [], arguments)


@pytest.mark.parametrize(
    ("batch", "accumulate", "after"), [(7, 1, (1, 7)), (9, 2, (3, 6)), ("64", "2", ("32", "4")), (2, 3, (1, 6))]
)
def test_the_effective_batch_stays_what_it_is(batch: object, accumulate: object, after: tuple[object, object]) -> None:
    changed = applied("mps_oom", {"train-batch": batch, "accumulate": accumulate})
    assert (changed.arguments["train-batch"], changed.arguments["accumulate"]) == after
    assert changed.risks == []


def test_an_effective_batch_that_cannot_be_kept_is_a_risk_that_is_said() -> None:
    odd = applied("mps_oom", {"train-batch": 97, "accumulate": 1})
    assert odd.risks == ["The effective batch changes from 97 to 96."]
    alone = applied("mps_oom", {"train-batch": 64}, roles={"batch_size": "train-batch"})
    assert said(alone) == ["train-batch 64 -> 32"]
    assert alone.risks[0].startswith("The effective batch changes from 64 to 32: no argument is known that accumulates")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"train-batch": 1, "accumulate": 4}, "train-batch is 1 already"),
        ({"train-batch": "auto", "accumulate": 1}, "train-batch has no whole number to scale (auto)"),
    ],
)
def test_what_cannot_be_scaled_changes_nothing_and_says_why(arguments: dict[str, object], reason: str) -> None:
    changed = applied("mps_oom", arguments)
    assert (changed.notes, changed.changes, changed.arguments) == ([reason], [], arguments)


def test_an_unmapped_role_is_named_and_nothing_changes() -> None:
    changed = applied("mps_oom", {"bs": 4}, roles={})
    assert (changed.changes, changed.notes, changed.unnamed) == ([], [], ["batch_size"])


def test_an_argument_that_is_to_go_and_was_never_given_is_no_news() -> None:
    assert said(applied("dl_spawn_guard", {"num_workers": 4})) == ["num_workers 4 -> 0"]


def test_no_workers_also_drops_what_needs_workers() -> None:
    changed = applied("dl_spawn_guard", {"num_workers": 4, "persistent": True})
    assert changed.arguments == {"num_workers": 0}
    assert said(changed) == ["num_workers 4 -> 0", "persistent true -> not given"]


def test_what_is_so_already_is_no_change() -> None:
    assert applied("nan_loss", {"precision": "fp32"}).changes == []
    assert applied("nan_loss", {"precision": "auto"}).changes != []
    assert applied("nan_loss", usual={"precision": "fp32"}).changes == []
    assert applied("mps_op_missing", env={FALLBACK: "1"}).notes == [f"{FALLBACK} was 1 already"]
    assert applied("omp_duplicate", env={"OMP_NUM_THREADS": "1"}).changes == []
    on_cpu = applied("mps_float64", device="cpu")
    assert (on_cpu.changes, on_cpu.device, on_cpu.notes) == ([], None, ["it ran on cpu already"])


def test_variables_are_set_and_unset() -> None:
    changed = applied("mps_watermark_invalid", env={HIGH: "0.7", "HOME": "/h"})
    assert changed.env == {"HOME": "/h"}
    assert said(changed) == [f"{HIGH} 0.7 -> unset"]
    assert said(applied("mps_op_missing", env={FALLBACK: "0"})) == [f"{FALLBACK} 0 -> 1"]
    assert said(applied("mps_op_missing")) == [f"{FALLBACK} unset -> 1"]


def test_a_cap_at_torchs_own_default_is_not_lifted_by_unsetting_it() -> None:
    changed = applied("killed_os", env={HIGH: "1.7", "PYTORCH_MPS_LOW_WATERMARK_RATIO": "1.4"}, roles={})
    assert changed.changes == []


def test_variables_of_mps_mean_nothing_elsewhere() -> None:
    changed = applied("killed_os", env={HIGH: "0.0"}, roles={}, device="cpu", may_be_mps=False)
    assert changed.changes == []
    assert changed.notes[0] == f"{HIGH} means nothing on cpu"


def test_a_device_is_passed_on() -> None:
    found = applied("mps_float64", device="mps")
    assert (found.device, said(found)) == ("cpu", ["device mps -> cpu"])


def test_what_can_harm_says_so() -> None:
    risky = {one.id for one in all_rules() if one.remedy.risk}
    assert risky == {"weights_only"}
    assert "any code" in (rule("weights_only").remedy.risk or "")


def test_no_remedy_sets_the_dangerous_variables() -> None:
    for one in all_rules():
        assert "KMP_DUPLICATE_LIB_OK" not in one.remedy.env
        assert one.remedy.env.get(HIGH) is None


def test_only_some_remedies_can_be_applied_by_a_launcher() -> None:
    assert rule("mps_oom").remedy.can_be_applied
    assert not rule("shape_bug").remedy.can_be_applied


WHOLE = {
    "batch_size": "64",
    "gradient_accumulation": "1",
    "workers": "4",
    "persistent_workers": "true",
    "prefetch_factor": "2",
    "precision": "bf16-mixed",
    "fp16": "true",
    "bf16": "true",
    "pin_memory": "true",
    "devices": "2",
    "strategy": "ddp",
    "processes": "2",
    "backend": "nccl",
}
"""A launch in which every role is played by an argument, each with a value that a remedy may have to change."""


@pytest.mark.parametrize("one", [one for one in all_rules() if one.remedy.can_be_applied], ids=lambda one: one.id)
def test_each_remedy_changes_what_it_says_and_applied_again_never_brings_back_what_it_changed(one: object) -> None:
    found = next(candidate for candidate in all_rules() if candidate is one)
    roles = {role: role for role in WHOLE}
    wrong = dict.fromkeys(found.remedy.env, "0")
    launch = KnownLaunch(arguments=WHOLE, roles=roles, env=wrong, device="mps")
    once = apply_remedy(found.remedy, launch)
    assert (once.asks, once.unnamed, once.risks) == ([], [], [found.remedy.risk] if found.remedy.risk else [])
    named = {change.name for change in once.changes}
    assert named == {change.role for change in found.remedy.args} | set(found.remedy.env) | (
        {"device"} if found.remedy.device else set()
    )
    assert all(change.before != change.after for change in once.changes)
    assert once.arguments.keys() <= WHOLE.keys()
    batch, accumulate = (int(str(once.arguments[role])) for role in ("batch_size", "gradient_accumulation"))
    assert batch * accumulate == 64
    after = KnownLaunch(arguments=once.arguments, roles=roles, env=once.env, device=once.device or "mps")
    again = {change.name for change in apply_remedy(found.remedy, after).changes}
    assert again <= {"batch_size", "gradient_accumulation"}


def test_shared_changes_are_pairs_that_belong_together() -> None:
    assert [change.role for change in SMALLER_BATCH] == ["batch_size", "gradient_accumulation"]
    assert NO_WORKERS[0] == ArgumentChange("workers", "set", 0)
    scaled = apply_remedy(
        Remedy(text="", args=(ArgumentChange("workers", "scale", 0.5),)), KnownLaunch(arguments={}, roles=ROLES)
    )
    assert scaled.asks == ["num_workers"]


@pytest.mark.parametrize(
    ("before", "choices", "after"),
    [
        ("bf16", (), "fp32"),
        ("16-mixed", (), "32"),
        (16, (), "32"),
        ("bfloat16", (), "float32"),
        ("bf16", ("no", "fp16", "bf16"), "no"),
        ("bf16", ("32-true", "bf16-mixed"), "32-true"),
        ("32", (), None),
        ("bf16", ("bf16", "fp16"), None),
    ],
)
def test_full_precision_is_said_in_the_programs_own_words(
    before: object, choices: tuple[str, ...], after: str | None
) -> None:
    launch = KnownLaunch(arguments={"precision": before}, roles=ROLES, choices={"precision": choices})
    found = apply_remedy(rule("nan_loss").remedy, launch)
    assert said(found) == ([f"precision {before} -> {after}"] if after else [])
    mixed = KnownLaunch(arguments={"mixed_precision": "fp16"}, roles={"precision": "mixed_precision"})
    assert said(apply_remedy(rule("amp_fp16_not_mps").remedy, mixed)) == ["mixed_precision fp16 -> no"]


def test_an_older_name_is_given_only_in_place_of_the_newer() -> None:
    changed = {"bf16-mixed": ["precision bf16-mixed -> bf16"], "16-mixed": ["precision 16-mixed -> 16"], "32-true": []}
    for before, after in changed.items():
        assert said(applied("lightning_precision", {"precision": before})) == after
