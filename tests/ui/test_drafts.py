"""The launch form on the real core: real profiles, real plans, nothing started."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mpstui.core.launching.actions import Actions
from mpstui.core.launching.choice import LaunchChoice, combinations
from mpstui.core.launching.drafts import Draft, Launcher
from mpstui.core.launching.form_fields import AFTER, ARGUMENT, COMMAND, MORE, MORE_SWEPT, QUEUE, SWEEP, VARIABLES
from mpstui.core.model.errors import OperationError, UsageError
from mpstui.core.model.home import Home
from mpstui.core.model.snapshot import Checkpoint
from mpstui.core.profiles.library import load_profile
from mpstui.core.profiles.model import profile_of_command
from mpstui.core.stakes import goes_on_from
from mpstui.wire.rundir import create_run_dir

from . import fakes

PROFILE = """
name = "A toy"
command = ["{python}", "toy.py"]
device = "cpu"
recipe = "classic"
description = "It only pretends."
[args]
epochs = 3
shuffle = true
layers = [64, 32]
[device_args]
cpu = ["--device", "cpu"]
"""


@pytest.fixture
def launcher(tmp_path: Path) -> Launcher:
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "toy.toml").write_text(PROFILE)
    (tmp_path / "profiles" / "broken.toml").write_text("nonsense = 1\n")
    home = Home(state=tmp_path / "state", config=tmp_path / "config")
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    return Launcher(home, environ, tmp_path, Actions(environ), time.time)


def values(draft: Draft, **changes: str) -> dict[str, str]:
    return {field.key: field.value for field in draft.fields} | changes


def test_the_list_has_the_folders_profiles_and_says_what_is_wrong(launcher: Launcher) -> None:
    entries = {entry.name: entry for entry in launcher.entries()}
    assert entries["toy"].error is None
    assert entries["toy"].description == "It only pretends."
    assert "nonsense" in (entries["broken"].error or "")


def test_fields_are_made_of_the_profile(launcher: Launcher) -> None:
    fields = {field.key: field for field in launcher.draft("toy").fields}
    assert fields["device"].value == "cpu"
    assert fields["device"].choices == ("auto", "cpu")  # nothing says how it would be told of another
    assert fields["recipe"].value == "classic"
    assert fields[f"{ARGUMENT}epochs"].value == "3"
    assert fields[f"{ARGUMENT}shuffle"].choices == ("true", "false")
    assert fields[f"{ARGUMENT}layers"].value == "64,32"


@pytest.mark.parametrize(
    ("words", "choices"),
    [
        ('"{python}", "toy.py"', ("auto", "cpu")),  # the agent hides the other devices
        ('"{python}", "toy.py", "--device", "mps"', ("auto", "mps", "cuda", "cpu")),
        ('"/bin/true"', ("auto",)),
    ],
)
def test_only_devices_that_the_program_can_be_put_on_are_offered(
    launcher: Launcher, words: str, choices: tuple[str, ...]
) -> None:
    path = launcher.home.config / "profiles" / "plain.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"command = [{words}]\n")
    fields = {field.key: field for field in launcher.draft("plain").fields}
    assert fields["device"].choices == choices


def test_the_preview_is_the_exact_command_with_reasons_and_doubts(launcher: Launcher) -> None:
    draft = launcher.draft("toy")
    preview = draft.preview(values(draft, **{f"{ARGUMENT}epochs": "9", f"{ARGUMENT}shuffle": "false"}))
    assert "--epochs 9" in preview.command
    assert "--shuffle" not in preview.command.replace("--no-shuffle", "")
    assert "--device cpu" in preview.command
    lines = {line.name: line for line in preview.environment}
    assert lines["PYTORCH_MPS_HIGH_WATERMARK_RATIO"].value == "0.0"
    assert lines["PYTORCH_MPS_HIGH_WATERMARK_RATIO"].doubtful
    assert all(line.reason for line in preview.environment)


def test_a_wrong_value_names_its_field(launcher: Launcher) -> None:
    draft = launcher.draft("toy")
    with pytest.raises(UsageError) as wrong:
        draft.preview(values(draft, **{f"{ARGUMENT}epochs": "many"}))
    assert wrong.value.field == f"{ARGUMENT}epochs"
    with pytest.raises(UsageError) as missing:
        draft.preview(values(draft, device="mps"))
    assert missing.value.field == "device"


def test_a_missing_program_is_told_at_no_field_whatever_its_path_is_called(launcher: Launcher, tmp_path: Path) -> None:
    text = PROFILE.replace('"{python}", "toy.py"', '"/nowhere/devices/train.py"')
    (tmp_path / "profiles" / "gone.toml").write_text(text)
    draft = launcher.draft("gone")
    with pytest.raises(UsageError, match=r"devices/train\.py does not exist") as missing:
        draft.launch(values(draft))
    assert missing.value.field is None


def test_an_argument_called_as_a_field_of_its_own_is_told_at_the_argument(launcher: Launcher, tmp_path: Path) -> None:
    (tmp_path / "profiles" / "own.toml").write_text(PROFILE.replace("epochs = 3", "recipe = 3"))
    draft = launcher.draft("own")
    with pytest.raises(UsageError) as wrong:
        draft.preview(values(draft, **{f"{ARGUMENT}recipe": "soup"}))
    assert wrong.value.field == f"{ARGUMENT}recipe"


def test_a_choice_is_saved_as_a_profile_and_found_again(launcher: Launcher) -> None:
    draft = launcher.draft("toy")
    path = draft.save(values(draft, **{f"{ARGUMENT}epochs": "7"}), "quick-toy")
    assert path.is_file()
    again = launcher.draft("quick-toy")
    assert values(again)[f"{ARGUMENT}epochs"] == "7"
    with pytest.raises(UsageError):
        draft.save(values(draft), "quick-toy")


def test_a_profile_with_mistakes_cannot_be_opened(launcher: Launcher) -> None:
    with pytest.raises(UsageError):
        launcher.draft("broken")


def test_the_form_shows_what_a_cure_changes(launcher: Launcher, tmp_path: Path) -> None:
    choice = LaunchChoice(load_profile("toy", launcher.home, tmp_path))
    cure = fakes.cure(choice=replace(choice, sets={"epochs": "2"}, device="cpu", env={"A": "1"}))
    draft = Draft(launcher, cure.choice, cure)
    assert draft.description == cure.sentence
    preview = draft.preview(values(draft))
    assert "--epochs 2" in preview.command
    assert preview.warnings[0] == cure.sentence


def test_the_form_asks_for_what_nobody_knows_and_starts_nothing_without_it(launcher: Launcher, tmp_path: Path) -> None:
    choice = LaunchChoice(load_profile("toy", launcher.home, tmp_path))
    draft = Draft(launcher, choice, fakes.cure(choice=choice, changes=(), asks=("batch",)))
    given = values(draft)
    assert given[f"{ARGUMENT}batch"] == ""
    with pytest.raises(UsageError, match="what batch was is not known") as caught:
        draft.preview(given)
    assert caught.value.field == f"{ARGUMENT}batch"
    assert "--batch 16" in draft.preview({**given, f"{ARGUMENT}batch": "16"}).command


SWEPT = (
    PROFILE
    + """
[sweep]
epochs = [3, 5]
[sweep.seed]
1 = {}
2 = { shuffle = false }
"""
)


def swept_draft(launcher: Launcher, tmp_path: Path) -> Draft:
    (tmp_path / "profiles" / "swept.toml").write_text(SWEPT)
    return launcher.draft("swept")


def test_swept_arguments_are_fields_of_several_values(launcher: Launcher, tmp_path: Path) -> None:
    draft = swept_draft(launcher, tmp_path)
    fields = {field.key: field.value for field in draft.fields}
    assert (fields[f"{SWEEP}epochs"], fields[f"{SWEEP}seed"]) == ("3, 5", "1, 2")
    assert f"{ARGUMENT}epochs" not in fields
    preview = draft.preview(values(draft))
    assert preview.runs == tuple(f"A toy epochs={epochs} seed={seed}" for epochs in (3, 5) for seed in (1, 2))
    assert "--epochs 3" in preview.command


def test_one_value_left_in_every_swept_field_is_one_run(launcher: Launcher, tmp_path: Path) -> None:
    draft = swept_draft(launcher, tmp_path)
    preview = draft.preview(values(draft, **{f"{SWEEP}epochs": "7", f"{SWEEP}seed": "2"}))
    assert preview.runs == ()
    assert "--epochs 7" in preview.command
    assert "--shuffle" not in preview.command


@pytest.mark.parametrize(("text", "part"), [(" , ", "at least one value"), ("3, many", "is a number")])
def test_a_mistake_in_a_swept_field_is_told_at_that_field(
    launcher: Launcher, tmp_path: Path, text: str, part: str
) -> None:
    draft = swept_draft(launcher, tmp_path)
    with pytest.raises(UsageError, match=part) as caught:
        draft.preview(values(draft, **{f"{SWEEP}epochs": text}))
    assert caught.value.field == f"{SWEEP}epochs"


def test_the_new_attempt_of_a_run_of_a_sweep_is_one_run_however_it_was_edited(
    launcher: Launcher, tmp_path: Path
) -> None:
    first = combinations(LaunchChoice(swept_draft(launcher, tmp_path)._choice.profile))[0]
    assert first.sets == {"epochs": "3", "seed": "1"}
    draft = Draft(launcher, first)
    edited = Draft(launcher, draft._chosen(values(draft, **{f"{ARGUMENT}layers": "8"})))
    assert not [field.key for field in edited.fields if field.key.startswith(SWEEP)]
    assert edited.preview(values(edited)).runs == ()


# -- what the command line can, the form can


def test_an_argument_that_the_profile_only_mentions_is_a_field_that_may_stay_empty(
    launcher: Launcher, tmp_path: Path
) -> None:
    text = PROFILE.replace("epochs = 3\n", 'epochs = 3\n# data = "/data/cifar10"   # the folder with the batches\n')
    (tmp_path / "profiles" / "mentions.toml").write_text(text)
    draft = launcher.draft("mentions")
    field = next(field for field in draft.fields if field.key == f"{ARGUMENT}data")
    assert (field.value, field.hint) == ("", "not passed")
    assert "--data" not in draft.preview(values(draft)).command
    given = draft.preview(values(draft, **{field.key: "~/cifar 10"}))
    assert f"--data '{Path.home()}/cifar 10'" in given.command
    assert not any("no argument" in warning for warning in given.warnings)


def test_further_arguments_and_variables_are_passed_on_and_kept(launcher: Launcher) -> None:
    draft = launcher.draft("toy")
    given = values(draft, **{MORE: "'note=two words' amp=true", VARIABLES: "OMP_NUM_THREADS=2 TAG='a b'"})
    preview = draft.preview(given)
    assert "--note 'two words' --amp" in preview.command
    assert {line.name: line.value for line in preview.environment}["TAG"] == "a b"
    again = Draft(launcher, draft._chosen(given), environ={})
    fields = {field.key: field.value for field in again.fields}
    assert (fields[f"{ARGUMENT}note"], fields[VARIABLES]) == ("two words", "OMP_NUM_THREADS=2 'TAG=a b'")
    assert not {MORE_SWEPT, AFTER, QUEUE} & set(fields)  # the next attempt of a run is one, and starts at once


@pytest.mark.parametrize(
    ("key", "text", "part"),
    [
        (MORE, "epochs", "is not KEY=VALUE"),
        (MORE, "epoch=4", "did you mean 'epochs'"),
        (MORE, "note='two", "not closed"),
        (MORE_SWEPT, "epochs=3,many", "is a number"),
        (MORE_SWEPT, "epochs=", "at least one value"),
        (VARIABLES, "1A=2", "NAME=VALUE"),
        (AFTER, "nobody", "no run 'nobody'"),
    ],
)
def test_a_mistake_in_a_further_field_is_told_there(launcher: Launcher, key: str, text: str, part: str) -> None:
    draft = launcher.draft("toy")
    with pytest.raises(UsageError, match=part) as wrong:
        draft.preview(values(draft, **{key: text}))
    assert wrong.value.field == key


def test_a_launch_can_be_swept_queued_and_made_to_wait(launcher: Launcher, tmp_path: Path) -> None:
    before = create_run_dir(launcher.home.runs, "before", 1.0)
    draft = launcher.draft("toy")
    preview = draft.preview(values(draft, **{MORE_SWEPT: "epochs=3,5", AFTER: f"{before.run}:any", QUEUE: "night"}))
    assert preview.runs == ("A toy epochs=3", "A toy epochs=5")
    assert preview.waits_for == ("a slot in queue night", f"the end (any) of {before.run}")


def test_a_path_is_completed_from_the_folder_the_program_runs_in(launcher: Launcher, tmp_path: Path) -> None:
    draft = launcher.draft("toy")
    folder = draft._choice.profile.cwd / "data"
    (folder / "plans").mkdir(parents=True)
    (folder / ".hidden").touch()
    assert draft.completed(f"{ARGUMENT}train-data", "da") == "data/"
    assert draft.completed(f"{ARGUMENT}epochs", "data/pl") == "data/plans/"
    assert draft.completed(f"{ARGUMENT}epochs", "da") is None
    assert draft.completed(f"{ARGUMENT}data", "nowhere/x") is None
    assert draft.completed(f"{ARGUMENT}data", "") is None


def test_the_options_of_a_command_without_a_profile_are_fields(launcher: Launcher, tmp_path: Path) -> None:
    profile = profile_of_command(("python", "train.py", "--lr=0.1", "--amp", "--epochs", "3"), cwd=tmp_path)
    draft = Draft(launcher, LaunchChoice(profile), environ={})
    fields = {field.key: (field.value, field.choices) for field in draft.fields if field.key.startswith(ARGUMENT)}
    assert fields == {
        f"{ARGUMENT}lr": ("0.1", ()),
        f"{ARGUMENT}amp": ("true", ("true", "false")),
        f"{ARGUMENT}epochs": ("3", ()),
    }
    changes = {f"{ARGUMENT}lr": "0.3", f"{ARGUMENT}amp": "false", f"{ARGUMENT}epochs": "9"}
    assert draft.preview(values(draft, **changes)).command == "python train.py --lr=0.3 --epochs 9"
    assert draft.preview(values(draft)).command == "python train.py --lr=0.1 --amp --epochs 3"


def edited(launcher: Launcher, tmp_path: Path, *words: str, **chosen: Any) -> Draft:
    """The form of a new attempt of a command."""
    choice = LaunchChoice(profile_of_command(words, cwd=tmp_path), **chosen)
    return Draft(launcher, choice, environ={}, before=choice)


def test_the_command_of_a_run_can_be_written_anew_and_what_changes_is_told(launcher: Launcher, tmp_path: Path) -> None:
    draft = edited(launcher, tmp_path, "python", "train.py", "data a", "--lr=0.1", "--amp", "--epochs", "3")
    shown = values(draft)
    assert shown[COMMAND] == "python train.py 'data a' --lr=0.1 --amp --epochs 3"
    assert draft.preview(shown).changes == ()
    preview = draft.preview(shown | {COMMAND: "python other.py 'data b' --lr=0.2 --epochs 3 --wd 1"})
    assert preview.command == "python other.py 'data b' --lr=0.2 --epochs 3 --wd 1"
    assert preview.changes == (
        "command python train.py 'data a' -> python other.py 'data b'",
        "amp true -> not given",
        "lr 0.1 -> 0.2",
        "wd not given -> 1",
    )
    both = shown | {COMMAND: "python train.py --lr=0.2 --epochs 5", f"{ARGUMENT}epochs": "9", f"{ARGUMENT}amp": "true"}
    assert draft.preview(both).command == "python train.py --lr=0.2 --epochs 9", "a field of its own is the last word"
    assert draft.preview(shown | {VARIABLES: "A=1", "recipe": "fast"}).changes == (
        "A unset -> 1",
        "recipe safe -> fast",
    )
    for wrong in ("", "python 'train.py"):
        with pytest.raises(UsageError) as told:
            draft.preview(shown | {COMMAND: wrong})
        assert told.value.field == COMMAND


@pytest.mark.parametrize(
    ("resume", "end"),
    [
        (
            '[resume]\nargs = ["--resume", "{checkpoint}"]\ncheckpoints = "*.pt"\n',
            " --device cpu --resume /runs/x/8.pt",
        ),
        ("", " --device cpu"),
    ],
)
def test_the_command_of_a_new_attempt_says_which_checkpoint_it_goes_on_from(
    launcher: Launcher, tmp_path: Path, resume: str, end: str
) -> None:
    (tmp_path / "profiles" / "toy.toml").write_text(PROFILE + resume)
    choice = LaunchChoice(load_profile("toy", launcher.home, tmp_path))
    whole = Checkpoint(Path("/runs/x/8.pt"), 1 << 20, fakes.NOW - 40.0, 8)
    growing = Checkpoint(Path("/runs/x/9.pt"), 1 << 20, fakes.NOW, 9, complete=False)
    failed = replace(fakes.running(), checkpoints=(growing, whole))
    draft = Draft(launcher, choice, environ={}, before=choice, goes_on_from=goes_on_from(failed))
    assert draft.preview(values(draft)).command.endswith(end)


def test_variables_can_be_left_out_by_name(launcher: Launcher, tmp_path: Path) -> None:
    draft = edited(launcher, tmp_path, "python", "train.py", env={"A": "1", "B": "2"}, drop_env=("C",))
    shown = values(draft)
    assert shown[VARIABLES] == "A=1 B=2 -C"
    preview = draft.preview(shown | {VARIABLES: "B=2 -C -D"})
    assert preview.changes == ("A 1 -> unset", "D set -> unset")
    with pytest.raises(UsageError, match="leaves out no variable"):
        draft.preview(shown | {VARIABLES: "-1x"})


def test_a_secret_of_a_command_is_not_shown_and_goes_on(launcher: Launcher, tmp_path: Path) -> None:
    words = ("python", "train.py", "--token", "sesame", "--api-key", "open-it", "--lr", "1")
    draft = edited(launcher, tmp_path, *words)
    shown = values(draft)
    assert shown[COMMAND] == "python train.py --token ••• --api-key ••• --lr 1"
    changed = draft._chosen(shown | {COMMAND: "python train.py --api-key ••• --lr 2"})
    assert changed.command == ("python", "train.py", "--api-key", "open-it", "--lr", "2")
    preview = draft.preview(shown | {COMMAND: "python train.py --token alibaba --lr 1"})
    assert "sesame" not in str(preview)
    assert "alibaba" not in str(preview)
    with pytest.raises(UsageError, match="stands for a secret"):
        draft.preview(shown | {COMMAND: "python train.py --password •••"})


KNOWING = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--epoch-size", type=int, default=100, help="samples an epoch")
parser.add_argument("--epochs", type=int)
parser.add_argument("--optimizer", choices=["adamw", "sgd"])
parser.add_argument("--amp", action="store_true")
parser.add_argument("--device")
parser.add_argument("folder")
parser.parse_args()
"""


def test_the_program_itself_is_asked_for_its_arguments(launcher: Launcher, tmp_path: Path) -> None:
    text = PROFILE.replace('"{python}", "toy.py"', f'"{sys.executable}", "{tmp_path}/toy.py"')
    (tmp_path / "profiles" / "knows.toml").write_text(text)
    (tmp_path / "toy.py").write_text(KNOWING)
    first = launcher.draft("knows")
    given = values(first, **{f"{ARGUMENT}epochs": "9", AFTER: create_run_dir(launcher.home.runs, "x", 1.0).run})
    draft = first.asking_the_program(given)
    fields = {field.key: field for field in draft.fields}
    hints = {key[len(ARGUMENT) :]: field.hint for key, field in fields.items() if field.hint and ARGUMENT in key}
    assert hints == {"epoch-size": "100  samples an epoch", "optimizer": "adamw | sgd", "amp": "not passed"}
    assert fields[f"{ARGUMENT}epochs"].value == "9"
    assert fields[AFTER].value.endswith("-x:ok")
    preview = draft.preview(values(draft, **{f"{ARGUMENT}epoch-size": "7", f"{ARGUMENT}amp": "true"}))
    assert "--epoch-size 7 --amp" in preview.command
    (tmp_path / "toy.py").write_text("print('no parser')")
    with pytest.raises(OperationError, match="does not say"):
        first.asking_the_program(given)


def test_what_stands_below_a_table_in_a_comment_is_no_argument(launcher: Launcher) -> None:
    path = launcher.home.config / "profiles" / "plain.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        'command = ["{python}", "toy.py"]\n[args]\n# epochs = 3\n\n# [resume]  # how\n# checkpoints = "*.pt"\n'
    )
    keys = {field.key for field in launcher.draft("plain").fields}
    assert (f"{ARGUMENT}epochs" in keys, f"{ARGUMENT}checkpoints" in keys) == (True, False)
