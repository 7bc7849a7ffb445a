"""Profiles are read as meant; what is wrong is named with file, line, key and likely meaning."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpstui.core.launching.choice import effective_arguments
from mpstui.core.model.checks import ProfileError
from mpstui.core.model.errors import UsageError
from mpstui.core.model.home import Home, resolve_home
from mpstui.core.profiles.library import list_profiles, load_profile, read_profile, shipped_folder
from mpstui.wire.records import RESTART_CAUSES

COMPLETE = """\
name = "Tiny · net"
command = ["{python}", "-P", "-m", "trainer", "cifar"]
python = "~/envs/a/bin/python"
cwd = "sub"
device = "mps"
recipe = "classic"
launcher = "torchrun"
processes = 2
max_log = "1.5 MB"
[env]
OMP_NUM_THREADS = 8
[args]
epochs = 200
optim.lr = 0.1
layers = [1, 2]
[resume]
args = ["--resume", "{checkpoint}"]
checkpoints = "checkpoints/*.pt"
[device_args]
cpu = ["--device", "cpu"]
[stop]
signal = "int"
grace_seconds = 5
[restart]
on = ["mps_oom"]
device = "cpu"
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return resolve_home({"MPSTUI_HOME": str(tmp_path / "home")})


def write(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def problems(tmp_path: Path, text: str) -> list[tuple[int | None, str]]:
    path = write(tmp_path, "bad.toml", text)
    with pytest.raises(ProfileError) as caught:
        read_profile(path, tmp_path)
    assert all(line.startswith(str(path)) for line in caught.value.sentence.splitlines())
    return [(problem.line, problem.sentence) for problem in caught.value.problems]


def test_every_key_is_read(tmp_path: Path) -> None:
    profile = read_profile(write(tmp_path, "tiny.toml", COMPLETE), tmp_path)
    assert (profile.name, profile.slug, profile.device, profile.recipe) == ("Tiny · net", "tiny", "mps", "classic")
    assert profile.python == str(Path("~/envs/a/bin/python").expanduser())
    assert profile.cwd == tmp_path / "sub"
    assert profile.args == {"epochs": 200, "optim.lr": 0.1, "layers": (1, 2)}
    assert profile.env == {"OMP_NUM_THREADS": "8"}
    assert profile.max_log_bytes == 1_500_000
    assert profile.resume_args == ("--resume", "{checkpoint}")
    assert (profile.stop.signal, profile.stop.grace_seconds) == ("int", 5)
    assert (profile.restart.on, profile.restart.device) == (["mps_oom"], "cpu")


def test_all_mistakes_are_listed_with_line_and_likely_meaning(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        'nme = "x"\ncommand = ["a"]\ndevice = "msp"\nprocesses = "two"\n\n[stop]\ngrace = 3\n'
        '[resume]\nargs = "--resume"\n',
    )
    assert [line for line, _ in found] == [1, 3, 4, 7, 9]
    text = "\n".join(sentence for _, sentence in found)
    for part in (
        "`name`?",
        "did you mean 'mps'?",
        "whole number",
        "`grace_seconds`?",
        "`args` in [resume] must be a list",
    ):
        assert part in text


def test_a_key_in_the_wrong_place_is_sent_home(tmp_path: Path) -> None:
    found = problems(tmp_path, 'command = ["a"]\ngrace_seconds = 3\nlearning_rate = 3\n[stop]\ndevice = "cpu"\n')
    assert "belongs in [stop]" in found[0][1]
    assert "own arguments go in [args]" in found[1][1]
    assert "belongs at the top" in found[2][1]


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ('name = "x"\n', None, "`command` is missing"),
        ("command = []\n", 1, "at least one word"),
        ('command = "python train.py --lr 1"\n', 1, '["python", "train.py", "--lr", "1"]'),
        ('command = ["a"]\n[env]\nDEBUG = true\n', 3, '"1"'),
        ('command = ["a"]\n[env]\n"A B" = "x"\n', 3, "no name of a variable"),
        ('command = ["a"]\nprocesses = 2\n', 2, "launcher"),
        ('command = ["a"]\nmax_log = "much"\n', 2, "256 MiB"),
        ('command = ["a"]\n[args]\nstart = 2026-11-21\n', 3, "must be a text, a number"),
        ('command = ["a"]\n[resume]\nargs = ["{checkpoint}"]\n', 3, "`checkpoints`"),
        ('command = ["a"]\nstop = "term"\n', 2, "must be a table"),
        ('command = ["a"]\nname = "unclosed\n', 2, "not TOML"),
        ('command = ["a"]\nstop = {grace = 1}\n', 2, "grace_seconds"),
        ('command = ["a"]\n[watch]\npattern = "loss (["\n', 3, "no regular expression: unterminated"),
        ('command = ["a"]\n[watch]\npattern = "(?P<x>a+)+b"\n', 3, "for ever on a line"),
        ('command = ["a"]\n[watch]\npattern = "loss"\n', 3, "names groups"),
        ('command = ["a"]\n[restart]\non = ["mps_omm"]\n', 3, "killed_os (did you mean 'mps_oom'?)"),
        ('command = ["a"]\n[restart]\non = ["cuda_oom", "nan_loss"]\n', 3, "one of disk_full, mps_watermark_invalid"),
    ],
)
def test_one_mistake(tmp_path: Path, text: str, line: int | None, part: str) -> None:
    found = problems(tmp_path, text)
    assert len(found) == 1
    assert found[0][0] == line
    assert part in found[0][1]


def test_text_inside_a_multi_line_string_is_no_key(tmp_path: Path) -> None:
    found = problems(tmp_path, 'command = ["a"]\ndescription = """\ndevice = 3\n"""\ndevice = 4\n')
    assert found[0][0] == 5


def test_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "latin.toml"
    path.write_bytes(b'command = ["a"]\nname = "caf\xe9"\n')
    with pytest.raises(UsageError, match=r"latin\.toml:2: .*UTF-8"):
        read_profile(path, tmp_path)


def test_the_folder_beats_the_user_beats_the_shipped(tmp_path: Path, home: Home) -> None:
    text = 'name = "{}"\ncommand = ["a"]\n'
    write(tmp_path / "profiles", "one.toml", text.format("folder"))
    write(home.user_profiles, "one.toml", text.format("mine"))
    write(home.user_profiles, "two.toml", text.format("Two, mine"))
    write(home.user_profiles, "broken.toml", "nonsense")
    assert load_profile("one", home, tmp_path).name == "folder"
    assert load_profile("two", home, tmp_path).name == "Two, mine"
    assert load_profile("two, MINE", home, tmp_path).slug == "two"
    entries = {entry.name: entry for entry in list_profiles(home, tmp_path)}
    assert entries["one"].origin == "folder"
    assert entries["broken"].error is not None
    assert entries["quickstart"].origin == "shipped"


def test_an_unknown_name_offers_the_nearest(tmp_path: Path, home: Home) -> None:
    with pytest.raises(UsageError) as caught:
        load_profile("quikstart", home, tmp_path)
    assert "quickstart" in caught.value.hint


def test_a_path_that_is_not_there(tmp_path: Path, home: Home) -> None:
    with pytest.raises(UsageError, match="No such file"):
        load_profile("./nothing.toml", home, tmp_path)


def test_where_a_profile_runs(tmp_path: Path, home: Home) -> None:
    own = write(tmp_path / "elsewhere", "own.toml", 'command = ["a"]\n')
    assert read_profile(own, tmp_path).cwd == tmp_path / "elsewhere"
    assert load_profile("quickstart", home, tmp_path).cwd == tmp_path


@pytest.mark.parametrize("path", sorted(shipped_folder().glob("*.toml")), ids=lambda path: path.stem)
def test_shipped_profiles_have_no_mistakes(path: Path, tmp_path: Path) -> None:
    profile = read_profile(path, tmp_path)
    assert profile.description
    assert profile.command[:4] == ("{python}", "-P", "-m", "{trainer}")
    assert set(profile.device_args) == {"auto", "mps", "cuda", "cpu"}
    assert profile.resume_args
    # What a person of any of these systems sets first is known to each of them, and no guess.
    first = {"seed": "42", "lr": "0.01", "accumulate": "2", "workers": "2", "batch-size": "8", "epochs": "3"}
    assert effective_arguments(profile, first)[1] == []


def test_home() -> None:
    assert resolve_home({"MPSTUI_HOME": "/some/where"}).runs == Path("/some/where/runs")
    assert resolve_home({"MPSTUI_HOME": "  "}).state.name == "mpstui"


def test_the_quick_start_is_found_first(tmp_path: Path, home: Home) -> None:
    first, *others = list_profiles(home, tmp_path)
    assert first.name == "quickstart"
    assert others


def test_the_document_lists_every_cause_of_a_restart() -> None:
    document = (Path(__file__).parents[3] / "docs" / "profiles.md").read_text()
    assert [cause for cause in RESTART_CAUSES if f"`{cause}`" not in document] == []
