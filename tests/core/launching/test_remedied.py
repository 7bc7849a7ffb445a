"""A remedy becomes a launch: what it sets is set, what it removes is gone wherever it came from, and it is said."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from mpstui.core.diagnosis.model import ArgumentChange, Finding, Kind, Remedy
from mpstui.core.diagnosis.rules import all_rules
from mpstui.core.launching.choice import LaunchChoice
from mpstui.core.launching.editing import finding_to_apply, recorded_choice, remedied, save_profile
from mpstui.core.launching.planning import plan, spec_json
from mpstui.core.model.home import Home
from mpstui.core.profiles.library import load_profile
from mpstui.core.profiles.model import DIAGNOSIS_ROLES, ROLES, Profile
from mpstui.wire import storage
from mpstui.wire.rundir import create_run_dir

from .conftest import linux

Build = Callable[[str], Profile]
HIGH = "PYTORCH_MPS_HIGH_WATERMARK_RATIO"
TEXT = """
command = ["{python}", "train.py"]
[args]
batch = 32
pin = true
lr = 0.1
[env]
PYTORCH_MPS_HIGH_WATERMARK_RATIO = "0.0"
[roles]
batch_size = "batch"
accumulate = "accumulate"
pin_memory = "pin"
"""
SMALLER = Remedy(
    text="halve",
    args=(
        ArgumentChange("batch_size", "scale", 0.5),
        ArgumentChange("gradient_accumulation", "scale", 2, default=1),
        ArgumentChange("pin_memory", "remove"),
        ArgumentChange("workers", "set", 0),
    ),
    env={HIGH: None, "TORCH_COMPILE_DISABLE": "1"},
)

SMALLER_BATCH = Remedy(text="halve", args=SMALLER.args[:2])


def finding(remedy: Remedy, kind: Kind = Kind.CAUSE) -> Finding:
    return Finding(
        id="x", title="x", kind=kind, confidence=0.9, evidence=(), cause="", remedy=remedy, restart_on_cpu_helps=False
    )


def test_a_remedy_changes_the_command_and_the_environment(profile_of: Build) -> None:
    environ = {"PATH": "/usr/bin:/bin", HIGH: "0.0"}
    fixed = remedied(LaunchChoice(profile_of(TEXT)), SMALLER, environ)
    made = plan(fixed.choice, environ=environ, machine=linux())
    assert made.argv == (sys.executable, "train.py", "--batch", "16", "--lr", "0.1", "--accumulate", "2")
    variant = made.template.variants["auto"]
    assert HIGH not in variant.env
    assert variant.unset == [HIGH]
    assert variant.env["TORCH_COMPILE_DISABLE"] == "1"
    assert "batch 32 -> 16" in fixed.applied
    assert f"{HIGH} unset" in fixed.applied
    assert fixed.sentence == (
        "Changed by the remedy: batch 32 -> 16, accumulate 1 -> 2, pin removed, "
        "PYTORCH_MPS_HIGH_WATERMARK_RATIO unset, TORCH_COMPILE_DISABLE=1. "
        "This profile does not say which argument sets workers; [roles] can."
    )


def test_a_remedy_that_can_change_nothing_says_why(profile_of: Build) -> None:
    fixed = remedied(LaunchChoice(profile_of(TEXT), sets={"batch": "1", "accumulate": "none"}), SMALLER_BATCH, {})
    assert fixed.applied == ()
    assert fixed.sentence == (
        "The remedy changes nothing here. "
        "It cannot do more: batch is 1 already, accumulate has no whole number to scale."
    )


def test_a_second_crash_halves_again(profile_of: Build) -> None:
    once = remedied(LaunchChoice(profile_of(TEXT)), SMALLER, {}).choice
    twice = remedied(once, SMALLER, {}).choice
    assert (twice.sets["batch"], twice.sets["accumulate"]) == ("8", "4")
    assert twice.drop_args == ("pin",)


def test_the_edit_is_remembered_by_the_record_and_by_a_saved_profile(profile_of: Build, tmp_path: Path) -> None:
    home = Home(tmp_path / "home", tmp_path / "home")
    fixed = remedied(LaunchChoice(profile_of(TEXT)), SMALLER, {}).choice
    made = plan(fixed, environ={"PATH": "/usr/bin:/bin"}, machine=linux())
    run = create_run_dir(home.runs, "net", 1.0)
    storage.write_json(run.spec, spec_json(made, run, 1.0))
    found = recorded_choice(run)
    assert (found.drop_args, found.drop_env) == (("pin",), (HIGH,))
    save_profile(found, "mended", home)
    saved = load_profile("mended", home, tmp_path)
    assert "pin" not in saved.args
    assert HIGH not in saved.env
    assert saved.args["batch"] == 16


def test_the_first_finding_that_a_launcher_can_cure_is_taken() -> None:
    told, symptom, cure = Remedy(text="read it"), Remedy(text="cpu", device="cpu"), Remedy(text="cpu", device="cpu")
    findings = (finding(told), finding(symptom, Kind.SYMPTOM), finding(cure))
    assert finding_to_apply(findings) is findings[2]
    assert finding_to_apply(findings[:2]) is None


def test_every_role_that_a_remedy_changes_can_be_named_by_a_profile() -> None:
    changed = {change.role for one in all_rules() for change in one.remedy.args}
    assert changed <= {*ROLES, *DIAGNOSIS_ROLES.values()}
