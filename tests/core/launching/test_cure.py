"""What can be done about a failed run: the remedy of its diagnosis, applied to what its last attempt really was."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from mpstui.core.diagnosis.engine import diagnose_run
from mpstui.core.diagnosis.model import ArgumentChange, Finding, Kind, Remedy, Rule
from mpstui.core.diagnosis.rules import all_rules, rule
from mpstui.core.launching.choice import LaunchChoice
from mpstui.core.launching.cure import Cure, cure_of
from mpstui.core.launching.editing import recorded_choice, save_profile
from mpstui.core.launching.launch import spec_json
from mpstui.core.launching.planning import plan
from mpstui.core.model.home import Home
from mpstui.core.profiles.library import load_profile
from mpstui.core.profiles.model import DIAGNOSIS_ROLES, ROLES, Profile, profile_of_command
from mpstui.wire import storage
from mpstui.wire.heartbeat import DeviceReading, Heartbeat, to_json
from mpstui.wire.records import ExitRecord, LaunchRecord
from mpstui.wire.rundir import RunDir, create_run_dir

from .conftest import linux

Build = Callable[[str], Profile]
ENVIRON = {"PATH": "/usr/bin:/bin"}
HIGH, FALLBACK = "PYTORCH_MPS_HIGH_WATERMARK_RATIO", "PYTORCH_ENABLE_MPS_FALLBACK"
TEXT = """
command = ["{python}", "train.py"]
agent = false
[args]
batch = 32
pin = true
lr = 0.1
[env]
PYTORCH_MPS_HIGH_WATERMARK_RATIO = "0.0"
[device_args]
mps = ["--device", "mps"]
[roles]
batch_size = "batch"
accumulate = "accumulate"
pin_memory = "pin"
"""
SMALLER = Remedy(
    text="halve",
    args=(
        ArgumentChange("batch_size", "scale", 0.5),
        ArgumentChange("gradient_accumulation", "scale", 2),
        ArgumentChange("pin_memory", "remove"),
        ArgumentChange("workers", "set", 0),
    ),
    env={HIGH: None, "TORCH_COMPILE_DISABLE": "1"},
)
OUT_OF_MEMORY = "RuntimeError: MPS backend out of memory (MPS allocated: 1.00 GiB)"
NO_OPERATOR = "NotImplementedError: The operator 'aten::x' is not currently implemented for the MPS device."


PARSER = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=64)
parser.add_argument("--gradient_accumulation_steps", type=int, default=2)
parser.parse_args()
"""


def finding(remedy: Remedy, kind: Kind = Kind.CAUSE, confidence: float = 0.9) -> Finding:
    return Finding(
        id="x",
        title="x",
        kind=kind,
        confidence=confidence,
        evidence=(),
        cause="",
        remedy=remedy,
        restart_on_cpu_helps=False,
    )


def crashed(
    choice: LaunchChoice, tmp_path: Path, device: str = "mps", text: str = "", environ: Mapping[str, str] = ENVIRON
) -> RunDir:
    """A run whose first attempt has failed."""
    home = Home(tmp_path / "home", tmp_path / "home")
    made = plan(choice, environ=environ, machine=linux(), check=False)
    run = create_run_dir(home.runs, "net", 1.0)
    storage.write_json(run.spec, spec_json(made, run, 1.0))
    variant = made.template.variants["auto"]
    folder = run.attempt(1)
    folder.path.mkdir(parents=True)
    record = LaunchRecord(1, 1.0, variant.argv, str(tmp_path), device, env=dict(variant.env))
    storage.write_json(folder.launch, record)
    folder.output.write_text(text + "\n")
    storage.write_json(folder.exit, ExitRecord(1, 2.0, code=1))
    return run


def cured(run: RunDir, *remedies: Remedy) -> Cure:
    found = cure_of(run, [finding(one) for one in remedies] or diagnose_run(run.path), ENVIRON, run.path / "kept")
    assert found is not None
    return found


def said(cure: Cure) -> list[str]:
    return [str(change) for change in cure.changes]


def test_a_remedy_changes_the_command_and_the_environment(profile_of: Build, tmp_path: Path) -> None:
    choice = LaunchChoice(profile_of(TEXT + "[defaults]\naccumulate = 1\n"))
    fixed = cured(crashed(choice, tmp_path), SMALLER)
    assert fixed.choice.device == "mps"  # where it ran
    made = plan(replace(fixed.choice, device=None), environ={**ENVIRON, HIGH: "0.0"}, machine=linux())
    assert made.argv == (sys.executable, "train.py", "--batch", "16", "--lr", "0.1", "--accumulate", "2")
    variant = made.template.variants["auto"]
    assert HIGH not in variant.env
    assert HIGH in variant.unset
    assert variant.env["TORCH_COMPILE_DISABLE"] == "1"
    assert fixed.sentence == (
        "Changed by the remedy: batch 32 -> 16, accumulate 1 -> 2, pin true -> not given, "
        "PYTORCH_MPS_HIGH_WATERMARK_RATIO 0.0 -> unset, TORCH_COMPILE_DISABLE unset -> 1. "
        "Which argument sets workers is not known; a profile can name it in [roles]."
    )


def test_what_the_profile_does_not_say_is_asked_for_and_nothing_is_assumed(profile_of: Build, tmp_path: Path) -> None:
    run = crashed(LaunchChoice(profile_of(TEXT)), tmp_path, text=OUT_OF_MEMORY)
    fixed = cured(run)
    assert (fixed.asks, fixed.changes, fixed.works) == (("accumulate",), (), True)
    assert fixed.choice.sets == {}
    assert "Not known: what accumulate was" in fixed.sentence
    answered = fixed.with_sets({"batch": "16", "accumulate": "2"})
    assert (answered.asks, answered.choice.sets) == ((), {"batch": "16", "accumulate": "2"})


def test_a_default_of_the_profile_may_depend_on_the_device(profile_of: Build, tmp_path: Path) -> None:
    text = TEXT.replace("batch = 32\n", "") + "[defaults]\naccumulate = 1\nbatch = { cuda = 256, mps = 64 }\n"
    choice = LaunchChoice(profile_of(text))
    assert said(cured(crashed(choice, tmp_path, text=OUT_OF_MEMORY))) == ["batch 64 -> 32", "accumulate 1 -> 2"]
    on_cuda = crashed(choice, tmp_path, "cuda", "torch.cuda.OutOfMemoryError: CUDA out of memory.")
    assert said(cured(on_cuda)) == ["batch 256 -> 128", "accumulate 1 -> 2"]
    elsewhere = crashed(choice, tmp_path, "cpu", "RuntimeError: DefaultCPUAllocator: can't allocate memory")
    assert cured(elsewhere).asks == ("batch",)


def test_what_the_run_itself_has_told_beats_what_its_profile_says(profile_of: Build, tmp_path: Path) -> None:
    text = TEXT.replace("batch = 32\n", "") + "[defaults]\naccumulate = 1\nbatch = 64\n"
    run = crashed(LaunchChoice(profile_of(text)), tmp_path, "auto", text=OUT_OF_MEMORY)
    beat = Heartbeat(1.0, 1, device=DeviceReading("mps", precision="bf16"), batch_size=16, accumulate=4)
    storage.write_json(run.attempt(1).heartbeat(), to_json(beat))
    assert said(cured(run)) == ["batch 16 -> 8", "accumulate 4 -> 8"]


def test_usual_names_of_a_bare_script_are_enough_to_keep_its_effective_batch(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('hello')\n")
    words = (sys.executable, "train.py", "--batch_size", "8", "--gradient_accumulation_steps", "3")
    found = cured(crashed(LaunchChoice(profile_of_command(words, cwd=tmp_path)), tmp_path, text=OUT_OF_MEMORY))
    assert said(found) == ["batch_size 8 -> 4", "gradient_accumulation_steps 3 -> 6"]
    assert found.risk is None
    (tmp_path / "train.py").write_text(PARSER)
    alone = profile_of_command(words[:4], cwd=tmp_path)
    halved = cured(crashed(LaunchChoice(alone), tmp_path, text=OUT_OF_MEMORY))
    assert said(halved) == ["batch_size 8 -> 4"]
    assert "The effective batch changes from 8 to 4" in (halved.risk or "")
    assert halved.sentence.endswith("^l in the form does that, or `mpstui restart RUN --fix`.")
    run = crashed(LaunchChoice(alone), tmp_path, text=OUT_OF_MEMORY)
    asked = cure_of(run, diagnose_run(run.path), ENVIRON, run.path / "kept", ask=True)
    assert asked is not None
    assert said(asked) == ["batch_size 8 -> 4", "gradient_accumulation_steps 2 -> 4"]
    assert asked.risk is None
    assert said(cured(run)) == said(asked)  # what was told is remembered: the screen and `diagnose` say the same


@pytest.mark.parametrize(
    ("written", "changed"),
    [("batch=16", "batch 16 -> 8"), ("--device-batch-size=32", "device-batch-size 32 -> 16")],
)
def test_names_of_a_batch_that_only_remedies_take_for_one(written: str, changed: str, tmp_path: Path) -> None:
    words = (sys.executable, "train.py", written)
    assert said(
        cured(crashed(LaunchChoice(profile_of_command(words, cwd=tmp_path)), tmp_path, text=OUT_OF_MEMORY))
    ) == [changed]


@pytest.mark.parametrize(
    ("written", "changed", "risky"),
    [
        ("--batch-size 64 --micro-batch-size 8", ["micro-batch-size 8 -> 4"], False),
        ("--global_batch_size=64 --micro_batch_size=8", ["micro_batch_size 8 -> 4"], False),
        ("--device-batch-size=32 --total-batch-size=524288", ["device-batch-size 32 -> 16"], False),
        (
            "--micro_batch_size=8 --gradient_accumulation_steps=2",
            ["micro_batch_size 8 -> 4", "gradient_accumulation_steps 2 -> 4"],
            False,
        ),
        ("--micro_batch_size=8", ["micro_batch_size 8 -> 4"], True),
        ("--batch_size=64 --microbatch=-1", ["batch_size 64 -> 32"], True),
    ],
)
def test_parts_of_a_batch_are_made_smaller_where_the_program_divides_it(
    written: str, changed: list[str], risky: bool, tmp_path: Path
) -> None:
    profile = profile_of_command((sys.executable, "train.py", *written.split()), cwd=tmp_path)
    found = cured(crashed(LaunchChoice(profile), tmp_path, text=OUT_OF_MEMORY))
    assert said(found) == changed
    assert (found.risk is not None) == risky


def test_what_a_loader_yields_is_not_the_size_of_the_parts(tmp_path: Path) -> None:
    """The agent tells the batch of the loader: a part was made four times as large."""
    (tmp_path / "train.py").write_text(PARSER.replace("gradient_accumulation_steps", "micro_batch_size"))
    run = crashed(
        LaunchChoice(profile_of_command((sys.executable, "train.py"), cwd=tmp_path)), tmp_path, text=OUT_OF_MEMORY
    )
    beat = Heartbeat(1.0, 1, device=DeviceReading("mps"), batch_size=64)
    storage.write_json(run.attempt(1).heartbeat(), to_json(beat))
    asked = cure_of(run, diagnose_run(run.path), ENVIRON, run.path / "kept", ask=True)
    assert asked is not None
    assert said(asked) == ["micro_batch_size 2 -> 1"]


def test_a_key_within_a_configuration_plays_its_role_where_it_is_the_only_one(tmp_path: Path) -> None:
    words = (sys.executable, "train.py", "train.batch_size=64", "trainer.accumulate_grad_batches=1", "data.workers=8")
    found = cured(crashed(LaunchChoice(profile_of_command(words, cwd=tmp_path)), tmp_path, text=OUT_OF_MEMORY))
    assert said(found) == ["train.batch_size 64 -> 32", "trainer.accumulate_grad_batches 1 -> 2"]
    assert found.choice.sets == {"train.batch_size": "32", "trainer.accumulate_grad_batches": "2"}
    two = profile_of_command((*words, "val.batch_size=128"), cwd=tmp_path)
    assert not cured(crashed(LaunchChoice(two), tmp_path, text=OUT_OF_MEMORY)).works


@pytest.mark.parametrize("text", [OUT_OF_MEMORY, "RuntimeError: loss is nan"])
def test_nothing_is_offered_for_a_bare_script_that_has_no_such_argument(text: str, tmp_path: Path) -> None:
    choice = LaunchChoice(profile_of_command((sys.executable, "train.py"), cwd=tmp_path))
    found = cured(crashed(choice, tmp_path, "auto", text))
    assert (found.works, found.could_ask) == (False, True)
    assert found.sentence.endswith("^l in the form does that, or `mpstui restart RUN --fix`.")
    assert "Which argument sets" in found.sentence


def test_what_the_failed_attempt_had_already_is_not_offered_again(profile_of: Build, tmp_path: Path) -> None:
    run = crashed(LaunchChoice(profile_of(TEXT)), tmp_path, text=NO_OPERATOR)  # recipe safe sets it
    found = diagnose_run(run.path)
    assert f"{FALLBACK}=1 was set already and did not help." in found[0].remedy.text
    assert not cured(run).works  # this program cannot be told to use the CPU
    told = TEXT.replace("[roles]", 'cpu = ["--device", "cpu"]\n[roles]')
    (tmp_path / "told").mkdir()
    assert said(cured(crashed(LaunchChoice(profile_of(told)), tmp_path / "told", text=NO_OPERATOR))) == [
        "device mps -> cpu"
    ]
    classic = crashed(LaunchChoice(profile_of(TEXT), recipe="classic", env={FALLBACK: "0"}), tmp_path, text=NO_OPERATOR)
    assert said(cured(classic)) == [f"{FALLBACK} 0 -> 1"]


def test_a_run_on_the_cpu_is_offered_no_remedy_of_mps(profile_of: Build, tmp_path: Path) -> None:
    run = crashed(
        LaunchChoice(profile_of(TEXT.replace("batch = 32", "size = 32").replace('batch_size = "batch"\n', ""))),
        tmp_path,
        "cpu",
    )
    found = cured(run, rule("killed_os").remedy)
    assert not found.works
    assert f"{HIGH} means nothing on cpu" in found.sentence


def test_the_cpu_is_offered_where_the_program_can_be_told(profile_of: Build, tmp_path: Path) -> None:
    text = "AssertionError: Torch not compiled with CUDA enabled"
    run = crashed(LaunchChoice(profile_of(TEXT)), tmp_path, "cuda", text)
    assert not cured(run).works
    assert "cannot be told to use cpu" in cured(run).sentence
    assert not diagnose_run(run.path)[0].restart_on_cpu_helps
    told = TEXT.replace('mps = ["', 'cpu = ["--device", "cpu"]\nmps = ["')
    run = crashed(LaunchChoice(profile_of(told)), tmp_path, "cuda", text)
    assert said(cured(run)) == ["device cuda -> cpu"]
    assert diagnose_run(run.path)[0].restart_on_cpu_helps
    on_cpu = crashed(LaunchChoice(profile_of(told)), tmp_path, "cpu", text)
    assert not cured(on_cpu).works
    assert not diagnose_run(on_cpu.path)[0].restart_on_cpu_helps


def test_one_whole_graph_is_run_without_a_compiler_and_not_left_uncompiled(profile_of: Build, tmp_path: Path) -> None:
    choice = LaunchChoice(profile_of(TEXT))
    failed = "torch._inductor.exc.InductorError: SyntaxError: failed to compile"
    run = crashed(choice, tmp_path, text=failed)
    assert said(cured(run)) == ["TORCH_COMPILE_DISABLE unset -> 1"]
    (tmp_path / "train.py").write_text("model = torch.compile(model, fullgraph=True)\n")
    assert said(cured(run)) == ["TORCH_COMPILE_OVERRIDE_BACKENDS unset -> >=0:eager"]


def test_a_second_crash_halves_again(profile_of: Build, tmp_path: Path) -> None:
    once = cured(crashed(LaunchChoice(profile_of(TEXT + "[defaults]\naccumulate = 1\n")), tmp_path), SMALLER).choice
    twice = cured(crashed(once, tmp_path), SMALLER).choice
    assert (twice.sets["batch"], twice.sets["accumulate"]) == ("8", "4")
    assert twice.drop_args == ("pin",)


def test_the_edit_is_remembered_by_the_record_and_by_a_saved_profile(profile_of: Build, tmp_path: Path) -> None:
    home = Home(tmp_path / "home", tmp_path / "home")
    choice = LaunchChoice(profile_of(TEXT + "[defaults]\naccumulate = 1\n"))
    fixed = cured(crashed(choice, tmp_path), SMALLER).choice
    found = recorded_choice(crashed(fixed, tmp_path))
    assert (found.drop_args, found.drop_env) == (("pin",), (HIGH,))
    save_profile(found, "mended", home)
    saved = load_profile("mended", home, tmp_path)
    assert "pin" not in saved.args
    assert HIGH not in saved.env
    assert saved.args["batch"] == 16


def test_the_first_remedy_that_works_is_taken_of_causes_about_as_probable(profile_of: Build, tmp_path: Path) -> None:
    run = crashed(LaunchChoice(profile_of(TEXT)), tmp_path)
    told, idle, cure = Remedy(text="read"), Remedy(text="w", args=SMALLER.args[3:]), Remedy(text="c", env={"A": "1"})
    assert cured(run, told, idle, cure).finding.remedy == cure
    assert cured(run, told, idle).finding.remedy == idle
    assert cure_of(run, (finding(told), finding(cure, Kind.SYMPTOM)), ENVIRON, tmp_path) is None
    assert cure_of(run, (finding(told), finding(cure, confidence=0.5)), ENVIRON, tmp_path) is None
    assert cure_of(run, (), ENVIRON, tmp_path) is None


def test_every_role_that_a_remedy_changes_can_be_named_by_a_profile() -> None:
    changed = {change.role for one in all_rules() for change in one.remedy.args}
    assert changed <= {*ROLES, *DIAGNOSIS_ROLES.values()}


def test_a_variable_that_the_script_defeats_is_not_offered(profile_of: Build, tmp_path: Path) -> None:
    text = "_pickle.UnpicklingError: Weights only load failed."
    run = crashed(LaunchChoice(profile_of(TEXT)), tmp_path, text=text)
    assert said(cured(run)) == ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD unset -> 1"]
    explicit = crashed(
        LaunchChoice(profile_of(TEXT)), tmp_path, text=f"    torch.load(path, weights_only=True)\n{text}"
    )
    found = cured(explicit)
    assert not found.works
    assert "weights_only=True itself" in found.sentence


def test_arguments_of_a_bare_script_that_only_remedies_know_are_changed_too(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('hello')\n")
    words = (sys.executable, "train.py", "--mixed_precision", "fp16", "--dataloader_num_workers", "4")
    choice = LaunchChoice(profile_of_command(words, cwd=tmp_path))
    assert said(cured(crashed(choice, tmp_path, text="ValueError: fp16 mixed precision requires a GPU"))) == [
        "mixed_precision fp16 -> no"
    ]
    assert said(cured(crashed(choice, tmp_path, text="AttributeError: Can't pickle local object 'f'"))) == [
        "dataloader_num_workers 4 -> 0"
    ]


ALONE = [one for one in all_rules() if one.remedy.args and not one.remedy.device and one.kind is not Kind.SYMPTOM]


@pytest.mark.parametrize("one", ALONE, ids=lambda one: one.id)
def test_a_remedy_of_arguments_is_not_offered_to_a_script_that_has_none(one: Rule, tmp_path: Path) -> None:
    run = crashed(LaunchChoice(profile_of_command((sys.executable, "train.py"), cwd=tmp_path)), tmp_path, "cuda")
    found = cured(run, one.remedy)
    assert (found.works, found.choice.sets) == (False, {})


def test_a_folder_that_is_added_to_pythonpath_stands_before_those_of_the_launch(tmp_path: Path) -> None:
    (tmp_path / "project" / "nets").mkdir(parents=True)
    (tmp_path / "project" / "nets" / "__init__.py").touch()
    (tmp_path / "project" / "tools").mkdir()
    profile = profile_of_command((sys.executable, "train.py"), cwd=tmp_path / "project" / "tools")
    missing, environ = "ModuleNotFoundError: No module named 'nets'", {**ENVIRON, "PYTHONPATH": "/mine"}
    run = crashed(LaunchChoice(profile), tmp_path, device="cpu", text=missing, environ=environ)
    folder = run.attempt(1)
    launched = storage.read(LaunchRecord, folder.launch)
    assert launched is not None
    assert launched.env["PYTHONPATH"].endswith("agent/boot:/mine"), "the agent's folder is none of the user's"
    storage.write_json(folder.launch, launched._replace(cwd=str(profile.cwd)))
    cure = cured(run)
    assert cure.choice.env["PYTHONPATH"] == f"{tmp_path / 'project'}:/mine"
    assert said(cure) == [f"PYTHONPATH /mine -> {tmp_path / 'project'}:/mine"]
