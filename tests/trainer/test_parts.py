"""Checkpoints that several ranks write at once, and any number of them reads."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from mpstui.core.runs.checkpoints import CheckpointScanner
from mpstui.supervisor.checkpoints import is_complete, measure
from mpstui.wire.checkpoints import owner_of, rows_name
from tests.trainer import part_ranks
from tests.trainer.building import ROOT, environment
from tests.trainer.running import command
from trainer import parts, pretrained
from trainer.checkpoint import CheckpointFolder, find, incomplete, load
from trainer.errors import UsageError


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What trainings of one to four ranks left."""
    folder = tmp_path_factory.mktemp("chain")
    child = subprocess.run(
        [sys.executable, "-m", "tests.trainer.part_ranks", str(folder)],
        env=environment(compiler=True), cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert child.returncode == 0, child.stderr[-4000:]
    return folder


def _state(chain: Path, name: str) -> dict[str, Any]:
    return dict(load(part_ranks.checkpoint_of(chain, name), incomplete).state)


def _same(one: Any, other: Any) -> None:
    """Equal bit for bit."""
    if isinstance(one, torch.Tensor):
        assert torch.equal(one, other)
        assert one.dtype == other.dtype
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            _same(one[key], other[key])
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for mine, theirs in zip(one, other, strict=True):
            _same(mine, theirs)
    else:
        assert one == other


@pytest.mark.parametrize(
    ("before", "after"), [("alone", "two"), ("two-on", "four"), ("four", "three"), ("three", "one"), ("two-on", "one")]
)
def test_any_number_of_ranks_reads_what_any_number_wrote(chain: Path, before: str, after: str) -> None:
    one, other = _state(chain, before), _state(chain, after)
    for part in ("model", "average", "progress", "order"):
        _same(one[part], other[part])
    _same(one["optimizer"]["state"], other["optimizer"]["state"])  # the rate is set anew at each step
    assert one["optimizer"]["state"]
    assert one["average"]["updates"] > 0


def test_each_rank_wrote_its_own_part(chain: Path) -> None:
    for name, ranks in (("two", 2), ("four", 4), ("three", 3)):
        names = {path.name for path in part_ranks.checkpoint_of(chain, name).iterdir()}
        assert names == {"manifest", *(rows_name(rank, ranks) for rank in range(ranks))}
    assert part_ranks.checkpoint_of(chain, "one").is_file()
    sizes = [path.stat().st_size for path in part_ranks.checkpoint_of(chain, "two").glob("rows-*")]
    whole = part_ranks.checkpoint_of(chain, "alone").stat().st_size
    assert max(sizes) < 0.75 * whole


def test_as_many_ranks_as_wrote_it_go_on_with_their_own_generators(chain: Path) -> None:
    one, other = (_state(chain, name)["rng_of_ranks"] for name in ("two-on", "two-again"))
    _same(one, other)
    assert not torch.equal(one[0]["torch"], one[1]["torch"])
    _same(_state(chain, "four")["rng"], one[0])


def test_ranks_that_share_no_folder_save_through_the_leading_one(chain: Path) -> None:
    assert part_ranks.checkpoint_of(chain, "gathered").is_file()
    for part in ("model", "average"):
        _same(_state(chain, "gathered")[part], _state(chain, "two-on")[part])
    assert not list((chain / "gathered" / "checkpoints").glob(".*"))


def test_it_is_judged_exported_and_begun_from_as_a_file_is(chain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words, told = part_ranks.WORDS[1:], []
    for name in ("two-on", "one"):
        path = part_ranks.checkpoint_of(chain, name)
        assert command("evaluate", str(path), *words, "--device", "cpu") == 0
        told.append(capsys.readouterr().out.partition('"step"')[2])
        assert command("export", str(path), str(chain / f"{name}.safetensors")) == 0
        capsys.readouterr()
    assert told[0] == told[1]
    _same(*(load_file(chain / f"{name}.safetensors") for name in ("two-on", "one")))
    _same(*(dict(pretrained.read(part_ranks.checkpoint_of(chain, name))) for name in ("two-on", "one")))
    best = chain / "four" / "checkpoints" / "best.pt"
    assert command("evaluate", str(best.parent), *words, "--device", "cpu") == 0
    _same(load(best, incomplete).state["model"], _state(chain, "four")["model"])


def test_the_monitor_takes_the_folder_for_one_checkpoint(chain: Path) -> None:
    folder = part_ranks.checkpoint_of(chain, "four")
    (found,) = (one for one in CheckpointScanner().scan("*.pt", (folder.parent,), {}) if not one.best)
    size = sum(path.stat().st_size for path in folder.iterdir())
    assert (found.size_bytes, found.step, found.complete) == (size, 3, True)
    item = measure(folder)
    assert item is not None
    assert item.size_bytes == size
    assert is_complete(item, sleep=lambda seconds: None, now=item.time + 60)


def _saved(folder: Path, step: int, *, keep: int = 1, run: str | None = None, best: bool = True) -> Path:
    """A checkpoint of two ranks in this process: 3 rows, of which the first has 2."""
    into = CheckpointFolder(folder, keep, run)
    place, weight = into.begin(step), nn.Parameter(torch.zeros(3, 2))
    found = None
    for rank, rows in ((0, 2), (1, 1)):
        held = torch.full((rows, 2), float(step + rank))
        found = parts.split({"model": {"a": parts.Rows(weight, held)}, "rng": {}, "value": step})
        parts.write_rows(place, rank, 2, f"save {step}", found)
    assert found is not None
    return into.commit(parts.manifest(found, 2, f"save {step}"), step, best=best)


def _read(path: Path) -> int:
    state = load(path, lambda state: None).state
    step = int(state["value"])
    assert state["model"]["a"].tolist() == [[step] * 2, [step] * 2, [step + 1] * 2]
    return step


_CALLS = ("fsync", "rename", "replace", "link", "unlink", "mkdir", "rmdir", "open")


def _killed_at(call: int, do: Callable[[], object]) -> bool:
    """Do it in a process that is gone at its nth call to the file system; whether it came that far."""
    child = os.fork()
    if not child:
        left = call
        real = {name: getattr(os, name) for name in _CALLS}

        def counted(name: str) -> Callable[..., Any]:
            def made(*words: Any, **named: Any) -> Any:
                nonlocal left
                left -= 1
                if left == 0:
                    os._exit(9)
                return real[name](*words, **named)

            return made

        for name in _CALLS:
            setattr(os, name, counted(name))
        do()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


@pytest.mark.skipif(not hasattr(os, "fork") or sys.platform == "darwin", reason="forks a process that has torch")
@pytest.mark.parametrize("step", [1, 2], ids=["the same step", "the next step"])
def test_a_kill_at_any_point_leaves_a_whole_checkpoint_and_no_half_one(
    tmp_path: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda file: None)  # no power is cut here
    before = tmp_path / "before"
    _saved(before, 1)
    call, killed = 0, True
    while killed:
        call += 1
        folder = tmp_path / str(call)
        shutil.copytree(before, folder)
        killed = _killed_at(call, lambda folder=folder: _saved(folder, step))  # type: ignore[misc]
        newest = find(str(folder), folder, lambda state: None, pytest.fail)
        assert newest is not None
        assert _read(newest.path) in {1, step}
        seen = [_read(path) for path in folder.glob("*.pt")]
        assert 2 <= len(seen) <= 5
        _saved(folder, 3)
        assert sorted(path.name for path in folder.iterdir() if "earlier" not in path.name) == [
            "best.pt", "step-00000003.pt"
        ]  # fmt: skip
    assert call > 20


def test_a_folder_takes_the_place_of_a_file_and_the_other_way_round(tmp_path: Path) -> None:
    saved = CheckpointFolder(tmp_path, keep=2)
    assert saved.save({"value": 1}, 1, best=True).is_file()
    assert _saved(tmp_path, 1, keep=2).is_dir()
    assert _read(tmp_path / "best.pt") == 1
    assert saved.save({"value": 2}, 1, best=True).is_file()
    assert load(tmp_path / "best.pt", lambda state: None).state["value"] == 2
    assert not list(tmp_path.glob("*replaced*"))


def test_it_names_the_run_that_wrote_it(tmp_path: Path) -> None:
    path = _saved(tmp_path, 1, run="20261123-134700-cifar")
    assert owner_of(path) == owner_of(tmp_path / "best.pt") == "20261123-134700-cifar"


def test_what_lacks_a_part_or_has_one_of_another_save_is_refused_and_passed_over(tmp_path: Path) -> None:
    older, newer = _saved(tmp_path, 1, keep=2, best=False), _saved(tmp_path, 2, keep=2, best=False)
    os.utime(older, (1, 1))
    shutil.copy2(older / rows_name(1, 2), newer / rows_name(1, 2))
    with pytest.raises(UsageError, match="rows-1-of-2 is of another save"):
        load(newer, lambda state: None)
    (newer / rows_name(1, 2)).unlink()
    with pytest.raises(UsageError, match="cannot be read as a checkpoint"):
        load(newer, lambda state: None)
    said: list[str] = []
    found = find(str(tmp_path), tmp_path, lambda state: None, said.append)
    assert found is not None
    assert found.path == older
    assert len(said) == 1
    shown = {one.path: one.complete for one in CheckpointScanner().scan("*.pt", (tmp_path,), {})}
    assert shown == {older: True, newer: False}
    item = measure(newer)
    assert item is not None
    assert not is_complete(item, sleep=lambda seconds: None, now=item.time + 60)
