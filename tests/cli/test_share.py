"""`mpstui report` and `mpstui export` as a person uses them."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace

import pytest

from mpstui.cli import share
from mpstui.cli.main import main
from tests.core.sharing.build import POISON, home_in, poisoned_run, resumed_run


@pytest.fixture(name="run")
def _run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("MPSTUI_HOME", str(tmp_path / "home"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "home").mkdir()
    return resumed_run(home_in(tmp_path / "home"))


def test_a_report_never_takes_a_name_that_is_taken_unless_told_to(
    run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("digits.html", "digits-2.html"):
        assert main(["report", run]) == 0
        assert capsys.readouterr().out.strip() == name
        assert stat.S_IMODE(Path(name).stat().st_mode) == 0o600, "whoever shares it does so on purpose"
    Path("mine.html").write_text("old")
    assert main(["report", run, run, "-o", "mine.html", "--title", "Both"]) == 0
    assert "<h1>Both</h1>" in Path("mine.html").read_text()


def test_a_log_that_mpstui_did_not_start_can_be_reported(
    run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(f"step {at} loss {1 / at:.4f}\n" for at in range(1, 50)))
    assert main(["report", str(log), run, "-o", "both.html"]) == 0
    assert "train.log" in Path("both.html").read_text()


def test_wrong_use_is_one_sentence(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "nobody"]) == 2
    assert main(["report", run, "--follow", "--every", "0"]) == 2
    assert main(["export", run, "--to", "csv", "-o", "/nowhere/x.csv"]) == 1
    assert main(["export", run, "--to", "svg", "--metric", "nothing"]) == 2
    said = capsys.readouterr().err
    for part in ("no run 'nobody'", "too short", "/nowhere/x.csv", "no metric 'nothing'", "it has loss, val_loss"):
        assert part in said


def test_exports_name_what_they_wrote(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", run, "--to", "csv"]) == 0
    assert main(["export", run, "--to", "tensorboard", "-o", "events"]) == 0
    assert main(["export", run, "--to", "svg", "--theme", "dark"]) == 0
    said = capsys.readouterr().out.split()
    assert said[0] == "digits.csv"
    assert Path(said[1]).parent == Path("events")
    assert "tfevents" in said[1]
    root = ET.parse(said[2]).getroot()
    texts = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "digits · loss" in texts
    assert "✗" in texts, "the NaN of step 20 is an event"
    assert len(list(root.iter("{http://www.w3.org/2000/svg}polyline"))) > 3


def test_several_runs_are_several_files_in_a_folder(
    run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = poisoned_run(home_in(tmp_path / "home"))
    log = tmp_path / "train.log"
    log.write_text("".join(f"step {at} loss {1 / at:.4f}\n" for at in range(1, 9)))
    (tmp_path / "empty.log").write_text("")
    words = [run, other, run, str(log), str(tmp_path / "empty.log")]
    assert main(["export", *words, "--to", "csv", "-o", "tables/new"]) == 1, "one of them has no table"
    said = capsys.readouterr()
    assert "empty.log has no metrics to export" in said.err
    assert sorted(map(str, Path().rglob("*.csv"))) == sorted(said.out.splitlines())
    assert {"digits.csv", "train.log.csv"} < {one.name for one in Path("tables/new").iterdir()}
    assert len(said.out.splitlines()) == 3
    assert main(["export", run, other, "--to", "tensorboard", "-o", "logs"]) == 0
    assert len({Path(one).parent for one in capsys.readouterr().out.splitlines()}) == 2, "each folder is a run there"
    Path("a.csv").write_text("old")
    for place in ("-", "a.csv"):
        assert main(["export", run, other, "--to", "csv", "-o", place]) == 2
    assert Path("a.csv").read_text() == "old"


def test_several_charts_are_drawn_without_the_runs_that_lack_the_metric(
    run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = [tmp_path / f"{name}.log" for name in ("first", "without", "last")]
    for log in logs:
        more = "" if log.stem == "without" else " acc {0}"
        log.write_text("".join(f"step {at} loss {1 / at:.4f}{more.format(at / 10)}\n" for at in range(1, 9)))
    words = ["export", *map(str, [logs[1], logs[0], logs[2]]), "--to", "svg", "--metric", "acc", "-o", "charts"]
    assert main(words) == 1
    said = capsys.readouterr()
    assert [Path(one).name for one in said.out.splitlines()] == ["first.log.svg", "last.log.svg"]
    assert said.err.splitlines() == ["mpstui: without.log has no metric 'acc'; it has loss"]
    assert main(["export", str(logs[1]), "--to", "svg", "--metric", "acc"]) == 2


@pytest.mark.parametrize("words", [["report"], ["export", "--to", "csv"], ["export", "--to", "svg"]])
def test_what_is_no_plain_file_is_written_to_and_stays_what_it_is(run: str, words: list[str]) -> None:
    command = [sys.executable, "-m", "mpstui", *words, run, "-o"]
    Path("kept").write_text("old")
    Path("link").symlink_to("kept")
    assert subprocess.run([*command, "link"], stdout=-1).returncode == 0
    assert Path("link").is_symlink()
    whole = Path("kept").read_bytes()
    assert len(whole) > 100
    os.mkfifo("pipe")
    with subprocess.Popen(["cat", "pipe"], stdout=-1) as reader:
        assert subprocess.run([*command, "pipe"], stdout=-1).returncode == 0
        assert reader.communicate(timeout=60)[0][:20] == whole[:20]
    assert stat.S_ISFIFO(Path("pipe").stat().st_mode)
    assert {one.name for one in Path().iterdir()} == {"kept", "link", "pipe"}


@pytest.mark.parametrize("place", ["-", "out"])
def test_a_file_can_go_to_the_standard_output(run: str, tmp_path: Path, place: str) -> None:
    """By a link of our own: were the device's name used, root could lose the device to a fault in what is tested."""
    Path("out").symlink_to("/dev/fd/1")
    command = [sys.executable, "-m", "mpstui", "export", run, "--to", "csv", "-o", place]
    with subprocess.Popen(command, stdout=-1) as piped:
        assert (piped.communicate(timeout=60)[0] or b"").startswith(b"step,epoch,time,"), "and no path behind it"
    with (tmp_path / "all.csv").open("ab") as file:
        file.write(b"before\n")
        file.flush()
        assert subprocess.run(command, stdout=file).returncode == 0
    assert (tmp_path / "all.csv").read_bytes().startswith(b"before\nstep,epoch,time,")
    assert [one.name for one in Path().iterdir() if one.is_symlink()] == ["out"]


def test_what_cannot_go_to_the_standard_output_says_so(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", run, "--to", "wandb", "-o", "-"]) == 2
    assert main(["report", run, "--follow", "-o", "-"]) == 2
    said = capsys.readouterr().err
    assert "a folder" in said
    assert "--follow" in said
    assert not list(Path().iterdir())


def test_a_picture_of_hostile_words_is_still_a_picture(
    run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = poisoned_run(home_in(tmp_path / "home"))
    assert main(["export", other, "--to", "svg", "--metric", POISON, "-o", "x.svg"]) == 0
    ET.parse("x.svg")
    assert "\x1b" not in Path("x.svg").read_text()


def test_a_followed_page_is_rewritten_until_its_run_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MPSTUI_HOME", str(tmp_path))
    stop, page, seen = tmp_path / "stop", tmp_path / "live.html", []
    loop = f"import os, time\nwhile not os.path.exists({str(stop)!r}): time.sleep(0.02)"
    assert main(["run", "--", sys.executable, "-c", loop]) == 0
    run = capsys.readouterr().out.strip()

    def between_two_writes(seconds: float) -> None:
        seen.append(page.read_text())
        stop.touch()
        time.sleep(0.05)

    monkeypatch.setattr(share, "time", SimpleNamespace(sleep=between_two_writes))
    assert main(["report", run, "-o", str(page), "--follow", "--every", "7"]) == 0
    assert 'name="reload" content="7"' in seen[0]
    final = page.read_text()
    assert 'name="reload"' not in final
    assert "✓ finished" in final
