"""`mpstui branch`: a new run goes on from a checkpoint of another one, which stays as it is."""

from __future__ import annotations

import io
import json
import os
import platform
import sys
from pathlib import Path

import pytest

from mpstui.cli.main import main
from mpstui.core.hosts.holding import checkpoint_files, hold
from mpstui.core.hosts.parcel import pack
from mpstui.core.model.errors import OperationError
from mpstui.core.model.home import Home, resolve_home
from mpstui.core.runs.monitor import Monitor
from mpstui.ui.charting.data import ChartData
from mpstui.wire import storage
from mpstui.wire.records import Branch, Spec
from mpstui.wire.rundir import RunDir
from tests.cli.programs import mpstui, ok
from tests.waiting import wait_until

SAVES = """\
import pathlib, sys
words = dict(zip(sys.argv[1::2], sys.argv[2::2]))
begin = int(pathlib.Path(words["--resume"]).read_text()) if "--resume" in words else 0
out = pathlib.Path(words["--out"])
out.mkdir(parents=True, exist_ok=True)
for step in range(begin + 1, begin + 31):
    print(f"step {step} loss {float(words['--lr']) / step:.4f}", flush=True)
    if step % 10 == 0:
        for old in out.glob("*.pt"):
            if step > begin + 30 or "--keep-one" in words: old.unlink()
        (out / f"step_{step}.pt").write_text(str(step))
"""


def saved(folder: Path, out: str = "{run_dir}/saved", *, resume: bool = True) -> str:
    """A run of 30 steps that has ended, with checkpoints of steps 10, 20 and 30."""
    (folder / "program.py").write_text(SAVES)
    how = ["--checkpoints", "saved/*.pt", *(["--resume=--resume {checkpoint}"] if resume else [])]
    words = ("--name", "parent", "--no-agent", *how, "--", sys.executable, "program.py", "--lr", "1", "--out", out)
    run = ok("run", *words, cwd=folder).strip()
    ok("wait", run, "--timeout", "90")
    return run


def shown(run: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(ok("show", run, "--json"))
    return found


def test_a_branch_begins_from_the_newest_checkpoint_before_its_step_with_other_arguments(tmp_path: Path) -> None:
    parent = saved(tmp_path)
    files = {path: path.read_bytes() for path in Path(str(shown(parent)["dir"]), "saved").iterdir()}
    told = json.loads(ok("branch", parent, "--at", "25", "--set", "lr=5", "--json", cwd=tmp_path))
    run = told["run"]
    checkpoint = str(next(p for p in files if "20" in p.name))
    assert told["branch"] == {"run": parent, "step": 20, "checkpoint": checkpoint, "host": None}
    ok("wait", run, "--timeout", "90")
    child = shown(run)
    assert child["branch"] == told["branch"]
    assert child["name"] == "parent from 20"
    assert ok("logs", run).splitlines()[0] == f"step 21 loss {5 / 21:.4f}"
    assert any(line.startswith("branch    from step 20 of") for line in ok("show", run).splitlines())
    loss = Monitor(resolve_home(os.environ)).snapshot(run).series["loss"]
    (piece,) = loss.superseded
    assert (loss.x[0], piece.x[0], piece.x[-1]) == (21.0, 1.0, 20.0), "the parent's curve, up to the branch"
    data = ChartData(name="loss", train=loss)
    assert data.extent() == (1.0, loss.x[-1])
    assert {path: path.read_bytes() for path in files} == files, "the parent's checkpoints are as they were"
    assert shown(parent)["attempts"] == 1


def test_a_branch_of_another_machine_has_the_checkpoint_in_its_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "code").mkdir()
    parent, far = saved(tmp_path / "code"), tmp_path / "far"
    monkeypatch.chdir(tmp_path / "code")
    monkeypatch.setattr("sys.stderr.isatty", lambda: False)
    away = json.loads(told(capsys, "branch", parent, "--at", "25", "--on", f"local:{far}", "--json"))["run"]
    log = RunDir(far / "runs" / away).attempt(1).output
    wait_until(lambda: log.exists() and "step 50" in log.read_text(), what="the branch there")
    assert log.read_text().startswith("step 21 ")
    spec = storage.read(Spec, RunDir(far / "runs" / away).spec)
    assert spec is not None
    own = far / "runs" / away / "brought" / "step_20.pt"
    assert spec.branch == Branch(parent, 20, str(own), platform.node())

    source = f"local:{far}:{away}"
    assert "this machine gets the checkpoint from step 40 of" in told(
        capsys, "branch", source, "--at", "45", "--dry-run"
    )
    back = told(capsys, "branch", source, "--at", "45").strip()
    ok("wait", back, "--timeout", "90")
    assert ok("logs", back).startswith("step 41 ")
    assert f"branch    from step 40 of {source}" in ok("show", back)
    (tmp_path / "code" / "own.toml").write_text(
        f'command = ["{sys.executable}", "program.py"]\n[args]\nlr = 1\nout = "{{run_dir}}/saved"\n'
        '[resume]\nargs = ["--resume", "{checkpoint}"]\ncheckpoints = "saved/*.pt"\n'
    )
    begun = told(capsys, "launch", "./own.toml", "--from", source, "--at", "35").strip()
    assert shown(begun)["branch"]["step"] == 30  # type: ignore[index]
    assert not list(resolve_home(os.environ).runs.glob(".held-*")), "the run has it now"


def told(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 0, capsys.readouterr()
    return capsys.readouterr().out


def test_a_checkpoint_that_arrives_as_something_else_is_not_begun_from(tmp_path: Path) -> None:
    home, (one, _) = Home(tmp_path, tmp_path), checkpoint_files(Path(__file__))[0]
    manifest = {"files": [list(one._replace(digest="0" * 64))]}
    packed = io.BytesIO()
    pack([(one, Path(__file__))], [one.digest], packed)
    packed.seek(0)
    with pytest.raises(OperationError, match="did not arrive whole"):
        hold(manifest, packed, home)
    packed.seek(len(packed.getvalue()) // 2)
    with pytest.raises(OperationError, match="did not arrive"):
        hold(manifest, packed, home)
    assert not list(home.runs.iterdir())


@pytest.mark.parametrize(
    ("how", "words", "why"),
    [
        ({}, ("--at", "5"), "has no complete checkpoint from step 5 or before"),
        ({"resume": False}, ("--at", "25"), "nothing says how its program resumes from a checkpoint"),
        ({"out": "saved"}, ("--at", "25"), "a branch would save to"),
        ({}, ("--at", "-1"), "is no step"),
    ],
)
def test_what_cannot_be_branched_is_refused_with_a_sentence(
    tmp_path: Path, how: dict[str, object], words: tuple[str, ...], why: str
) -> None:
    parent = saved(tmp_path, **how)  # type: ignore[arg-type]
    done = mpstui("branch", parent, *words, cwd=tmp_path)
    assert done.returncode != 0
    assert why in done.stderr
