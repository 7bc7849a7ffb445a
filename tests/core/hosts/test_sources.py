"""Which code travels to another machine, what stays, and how it arrives: real folders, real git, real tar streams."""

from __future__ import annotations

import io
import os
import subprocess
from pathlib import Path

import pytest

from mpstui.core.hosts.parcel import Item, digest_of, pack, unpack
from mpstui.core.hosts.sources import SourceTree, code_of, manifest_of, source_tree
from mpstui.core.hosts.staging import code_folder
from mpstui.core.hosts.stowing import arrived, lacking, stow
from mpstui.core.launching.provenance import take
from mpstui.core.model.errors import OperationError
from mpstui.core.model.home import Home
from mpstui.core.profiles.model import profile_of_command

TOKEN = "hf_" + "a1B2c3D4e5" * 3


@pytest.fixture
def far(tmp_path: Path) -> Home:
    return Home(tmp_path / "far", tmp_path / "far")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "my project"
    (made / "src").mkdir(parents=True)
    (made / "train.py").write_text("print('training')\n")
    (made / "src" / "model.py").write_text("layers = 3\n")
    (made / "run.sh").write_text("#!/bin/sh\n")
    (made / "run.sh").chmod(0o755)
    return made


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def send(tree: SourceTree, home: Home) -> Path:
    manifest = manifest_of(tree)
    out = io.BytesIO()
    pack(tree.paths(), lacking(manifest, home), out)
    return stow(manifest, io.BytesIO(out.getvalue()), home)


def names(tree: SourceTree) -> list[str]:
    return [one.name for one in tree.files]


def test_a_folder_travels_without_environments_caches_and_secrets(folder: Path) -> None:
    for path in (
        ".venv/bin/python",
        "env2/pyvenv.cfg",
        "env2/lib.py",
        "__pycache__/a.pyc",
        ".mypy_cache/b",
        ".git/HEAD",
    ):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("x")
    for path in (".env", ".env.local", "id_rsa", "server.key", ".aws/config", "kaggle.json"):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text("x")
    (folder / ".env.example").write_text("HF_TOKEN=\n")
    (folder / "config.py").write_text(f"a = 1\nkey = '{TOKEN}'\n")
    (folder / ".git" / "HEAD").unlink()
    (folder / ".git").rmdir()
    tree = source_tree(folder)
    assert names(tree) == [".env.example", "run.sh", "src/model.py", "train.py"]
    assert {one.name: one.why for one in tree.staying} == {
        **dict.fromkeys([".aws/config", ".env", ".env.local", "id_rsa", "kaggle.json", "server.key"], "secret"),
        "config.py": "token",
    }
    assert [one.line for one in tree.staying if one.why == "token"] == [2]


@pytest.mark.parametrize(
    "text",
    ["use sk-learn-compatible-estimators", "pip install npm_something_else", "password=None", "ghp_ is a prefix"],
)
def test_words_that_look_like_tokens_keep_no_file_back(folder: Path, text: str) -> None:
    (folder / "README.md").write_text(text)
    assert "README.md" in names(source_tree(folder))


def test_of_a_repository_what_git_does_not_ignore_travels_with_its_changes(folder: Path) -> None:
    git(folder, "init", "-q")
    (folder / ".gitignore").write_text("data/\n*.pt\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "a")
    (folder / "data").mkdir()
    (folder / "data" / "images.bin").write_text("x")
    (folder / "best.pt").write_text("x")
    (folder / "train.py").write_text("print('changed')\n")
    (folder / "new ü\n.py").write_text("untracked\n")
    (folder / "run.sh").unlink()
    tree = source_tree(folder / "src")
    assert tree.root == folder
    assert names(tree) == [".gitignore", "new ü\n.py", "src/model.py", "train.py"]
    assert tree.provenance.commit is not None
    assert tree.provenance.changed_files == 2
    assert "+print('changed')" in tree.diff


def test_a_repository_inside_another_is_asked_itself(folder: Path) -> None:
    git(folder, "init", "-q")
    inner = folder / "third" / "lib"
    inner.mkdir(parents=True)
    git(inner, "init", "-q")
    (inner / ".gitignore").write_text("build\n")
    (inner / "lib.py").write_text("x")
    (inner / "build").write_text("x")
    assert {"third/lib/lib.py", "third/lib/.gitignore"} <= set(names(source_tree(folder)))
    assert "third/lib/build" not in names(source_tree(folder))


def test_links_travel_where_they_lead_inside_and_stay_where_they_lead_out(folder: Path) -> None:
    (folder / "inside").symlink_to("src/model.py")
    (folder / "data").symlink_to("/usr/share")
    (folder / "up").symlink_to("../elsewhere")
    os.mkfifo(folder / "pipe")
    tree = source_tree(folder)
    assert [one.link for one in tree.files if one.name == "inside"] == ["src/model.py"]
    assert {(one.name, one.why) for one in tree.staying} == {
        ("data", "outside"),
        ("up", "outside"),
        ("pipe", "special"),
    }


def test_checkpoints_that_nobody_put_under_version_control_stay(tmp_path: Path, folder: Path) -> None:
    home = Home(tmp_path / "home", tmp_path / "home")
    for name in ("out/step-1.json", "out/last/part.bin", "best.pt", "start.pt", "other.pt", "run.json"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    words = ("python", "train.py", "--init=start.pt")
    profile = profile_of_command(words, cwd=folder, name="a", checkpoints="out/*")

    def sent(sets: dict[str, str]) -> set[str]:
        tree = code_of(profile, home, sets)
        assert tree is not None
        assert {one.why for one in tree.staying} == {"checkpoint"}
        return set(names(tree))

    code = {"run.sh", "train.py", "src/model.py", "run.json", "start.pt"}
    assert sent({}) == code
    assert sent({"warm": "other.pt"}) == {*code, "other.pt"}
    git(folder, "init", "-q")
    git(folder, "add", "best.pt", "train.py")
    assert sent({}) == {*code, "best.pt"}


def test_what_is_no_code_stays_and_a_folder_of_data_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpstui.core.hosts.sources.MOST_FILE_BYTES", 100)
    (folder / "weights.bin").write_bytes(b"x" * 101)
    assert [(one.name, one.why) for one in source_tree(folder).staying] == [("weights.bin", "large")]
    monkeypatch.setattr("mpstui.core.hosts.sources.MOST_FILES", 2)
    with pytest.raises(OperationError, match="is not sent"):
        source_tree(folder)


def test_it_arrives_as_it_was_with_its_commit_and_once(folder: Path, far: Home) -> None:
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "a")
    (folder / "src" / "same.py").symlink_to("model.py")
    tree = source_tree(folder)
    assert arrived(manifest_of(tree), far) is None
    there = send(tree, far)
    assert there.parent == code_folder(far)
    assert (there / "train.py").read_text() == "print('training')\n"
    assert (there / "run.sh").stat().st_mode & 0o777 == 0o700
    assert (there / "src" / "same.py").read_text() == "layers = 3\n"
    assert there.stat().st_mode & 0o077 == 0
    assert arrived(manifest_of(tree), far) == there
    assert take(there / "src", "", {})[0].commit == tree.provenance.commit
    assert send(tree, far) == there
    assert [path.name for path in code_folder(far).iterdir()] == [there.name]


def test_only_what_changed_is_sent_again(folder: Path, far: Home) -> None:
    first = send(source_tree(folder), far)
    (folder / "train.py").write_text("print('other')\n")
    tree = source_tree(folder)
    changed = [one.digest for one in tree.files if one.name == "train.py"]
    assert lacking(manifest_of(tree), far) == changed
    second = send(tree, far)
    assert second != first
    assert (first / "train.py").read_text() == "print('training')\n"
    assert (second / "src" / "model.py").read_text() == "layers = 3\n"


def test_a_folder_that_a_program_has_changed_is_neither_used_nor_taken_away(folder: Path, far: Home) -> None:
    tree = source_tree(folder)
    first = send(tree, far)
    (first / "train.py").write_text("changed there\n")
    assert arrived(manifest_of(tree), far) is None
    second = send(tree, far)
    assert second != first
    assert (second / "train.py").read_text() == "print('training')\n"
    assert (first / "train.py").read_text() == "changed there\n"


@pytest.mark.parametrize("damage", ["cut", "swapped", "none"])
def test_what_arrives_in_part_or_as_something_else_leaves_nothing_behind(folder: Path, far: Home, damage: str) -> None:
    tree = source_tree(folder)
    manifest, out = manifest_of(tree), io.BytesIO()
    pack(tree.paths(), [] if damage == "none" else lacking(manifest, far), out)
    data = out.getvalue()
    if damage == "cut":
        data = data[: len(data) // 2]
    if damage == "swapped":
        other = source_tree(folder)
        files = [one._replace(digest="0" * 64) if one.name == "train.py" else one for one in other.files]
        manifest["files"] = [list(one) for one in files]
    with pytest.raises(OperationError):
        stow(manifest, io.BytesIO(data), far)
    assert list(code_folder(far).iterdir()) == []


def test_weights_are_sent_as_they_are_and_logs_compressed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpstui.core.hosts.parcel._LARGE_BYTES", 1000)
    for name, size in (("weights", 100_000), ("log", 900)):
        (tmp_path / name).write_bytes(b"x" * size)
    files = {name: (Item(name, *digest_of(tmp_path / name)), tmp_path / name) for name in ("weights", "log")}

    def sent(*names: str) -> int:
        out = io.BytesIO()
        pack(iter(files.values()), [files[name][0].digest for name in names], out)
        assert set(unpack(io.BytesIO(out.getvalue()), tmp_path / "new")) == {files[name][0].digest for name in names}
        return len(out.getvalue())

    assert sent("log") < 900
    assert sent("weights", "log") > 100_900


@pytest.mark.parametrize(
    "rows",
    [
        [["../a", "0" * 64, 1]],
        [["/a", "0" * 64, 1]],
        [["./a", "0" * 64, 1]],
        [["a", "x", 1]],
        [["l", "", 0, False, "../b"]],
        [["a/b/up", "", 0, False, "../.."], ["a/b/l", "", 0, False, "up/../.."]],
        [["round", "", 0, False, "round"]],
        [["a/b/up", "", 0, False, "../.."], ["a/b/up/q", "", 0, False, "../../.."]],
        [["a", "0" * 64, 1], ["a/b", "0" * 64, 1]],
    ],
)
def test_a_list_that_leads_out_of_the_folder_is_refused(far: Home, rows: list[object]) -> None:
    with pytest.raises(OperationError, match="cannot be used"):
        stow({"name": "a", "digest": "0" * 64, "files": rows}, io.BytesIO(), far)


def test_a_file_that_changes_while_it_is_sent_is_told(folder: Path, far: Home) -> None:
    tree = source_tree(folder)
    wanted, out = lacking(manifest_of(tree), far), io.BytesIO()
    (folder / "train.py").write_text("short\n")
    with pytest.raises(OperationError, match=r"train\.py was changed"):
        pack(tree.paths(), wanted, out)
    (folder / "train.py").write_text("print('tEaInINg')\n")
    out = io.BytesIO()
    pack(tree.paths(), wanted, out)
    with pytest.raises(OperationError, match=r"train\.py did not arrive whole"):
        stow(manifest_of(tree), io.BytesIO(out.getvalue()), far)
