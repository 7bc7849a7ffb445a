"""A list that is asked for again and again reads on in a log where it stopped, and says what a whole reading says."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mpstui.cli.run_rows import list_rows
from mpstui.core.follow import SLICE_BYTES, Budget
from mpstui.core.formats.reader import LogReader
from mpstui.core.model.home import Home
from mpstui.core.runs import log_notes
from mpstui.core.runs.external import ExternalMetrics
from mpstui.core.runs.log_notes import LogNotes
from mpstui.core.runs.sources import PREVIEW_BYTES

from .build import RunBuilder, make_home

RUN = "20270115-080000-x"
LOGS = {
    "epochs announced once": "training for 3 epochs\n"
    + "".join(f"epoch {step // 40 + 1}/3 step {step} loss {9 / (step + 1):.4f} lr 0.001\n" for step in range(120)),
    "bars": "".join(
        f"\rEpoch 1/2:  {at}%|{'█' * (at // 10):10}| {at}/100 [00:{at:02}<01:00, 1.00it/s, loss={2 - at / 100:.3f}]"
        for at in range(60)
    ),
    "blocks": "".join(f"Epoch {at}\n----------\ntrain Loss: {1 / at:.4f} Acc: 0.5\n\n" for at in range(1, 40)),
    "training and validation": "".join(
        f"step {at}: loss {1 / at:.4f}\n" + (f"step {at}: val loss {2 / at:.4f}\n" if at % 10 == 0 else "")
        for at in range(1, 90)
    ),
}


def notes_in(tmp_path: Path) -> LogNotes:
    """Notes as a new process finds them."""
    return LogNotes(tmp_path / "cache" / "logs.json")


def look(path: Path, known: LogNotes | None = None, seconds: float = 60.0) -> ExternalMetrics:
    """One process looks at the log, and notes what it has learned."""
    found = ExternalMetrics(path, time.time)
    note = known.find(RUN, path, None) if known is not None else None
    if note is not None:
        found.recall(note)
    if found.poll():
        found.read(Budget(seconds))
    learned = found.note()
    if known is not None and learned is not None:
        known.keep(RUN, path, None, learned)
    if known is not None:
        known.write()
    return found


def told(found: ExternalMetrics) -> Mapping[str, Any]:
    """What a list shows of it: all but the moment at which somebody looked."""
    return {name: value for name, value in found.newest.items() if name != "time"}


@pytest.mark.parametrize("log", LOGS, ids=str)
def test_reading_on_says_what_reading_all_says(log: str, tmp_path: Path) -> None:
    path, data = tmp_path / "output.log", LOGS[log].encode()
    for end in range(400, len(data) + 700, 700):
        path.write_bytes(b"") if not path.exists() else None
        with path.open("ab") as file:
            file.write(data[end - 700 if end > 400 else 0 : end])
        whole = tmp_path / f"whole{end}.log"
        whole.write_bytes(data[:end])
        assert told(look(path, notes_in(tmp_path))) == told(look(whole))


def test_what_has_not_grown_is_told_without_a_reader(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    path.write_text(LOGS["epochs announced once"])
    look(path, notes_in(tmp_path))
    code = f"""
import sys, time
from pathlib import Path
from mpstui.core.runs.external import ExternalMetrics
from mpstui.core.runs.log_notes import LogNotes
path = Path({str(path)!r})
found = ExternalMetrics(path, time.time)
found.recall(LogNotes(Path({str(tmp_path / "cache" / "logs.json")!r})).find({RUN!r}, path, None))
assert found.newest["step"] == 119 and not found.poll(), found.newest
print("\\n".join(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert "mpstui.core.formats.reader" not in done.stdout.split()


def replaced(path: Path) -> None:
    path.rename(path.with_name("old.log"))
    path.write_text("step 7 loss 0.7\n" * 500)


def written_over(path: Path) -> None:
    """The same file, emptied and grown beyond where it was (``copytruncate``)."""
    path.write_text("step 7 loss 0.7\n" * 500)


def shorter(path: Path) -> None:
    path.write_text("step 7 loss 0.7\n")


@pytest.mark.parametrize("change", [replaced, written_over, shorter])
def test_another_file_is_read_from_its_start(change: Any, tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    path.write_text("".join(f"step {at} loss 0.5\n" for at in range(100)))
    assert look(path, notes_in(tmp_path)).newest["step"] == 99
    change(path)
    assert look(path, notes_in(tmp_path)).newest["step"] == 7


def test_notes_that_cannot_be_understood_cost_time_alone(tmp_path: Path) -> None:
    path, noted = tmp_path / "output.log", tmp_path / "cache" / "logs.json"
    path.write_text("".join(f"step {at} loss 0.5\n" for at in range(100)))
    look(path, notes_in(tmp_path))
    whole = noted.read_bytes()
    with path.open("a") as file:
        file.write("step 100 loss 0.5\n")
    for broken in (
        b"",
        b"{}",
        b"[1]\n",
        whole[:50],
        whole[:-9],
        *(whole.replace(b'"newest": {', other) for other in ODD),
    ):
        noted.write_bytes(broken)
        assert look(path, notes_in(tmp_path)).newest["step"] == 100


ODD = (b'"oldest": {', b'"newest": 1, "x": {')


def test_a_note_that_lacks_something_is_written_anew(tmp_path: Path) -> None:
    path, noted = tmp_path / "output.log", tmp_path / "cache" / "logs.json"
    path.write_text("step 1 loss 0.5\n")
    look(path, notes_in(tmp_path))
    noted.write_bytes(noted.read_bytes().replace(b'"newest"', b'"oldest"'))
    look(path, notes_in(tmp_path))
    assert notes_in(tmp_path).find(RUN, path, None) is not None
    path.unlink()
    known = notes_in(tmp_path)
    assert known.find(RUN, path, None) is None
    known.write()
    assert RUN not in noted.read_text()


def test_a_note_of_another_version_or_pattern_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "output.log"
    path.write_text("step 1 loss 0.5\n")
    look(path, notes_in(tmp_path))
    assert notes_in(tmp_path).find(RUN, path, None) is not None
    assert notes_in(tmp_path).find(RUN, path, "step (?P<step>.*)") is None
    monkeypatch.setattr(log_notes, "reader_version", lambda: "9.9")
    assert notes_in(tmp_path).find(RUN, path, None) is None


def test_of_a_long_log_that_has_grown_the_end_is_read(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    path.write_text("training for 3 epochs\nepoch 1/3 step 1 loss 0.5\n")
    look(path, notes_in(tmp_path))
    with path.open("a") as file:
        file.writelines(f"step {at} loss 0.5\n" for at in range(2, 4 * PREVIEW_BYTES // 16))
        file.write("step 999999 loss 0.25\n")
    for _ in range(2):
        found = look(path, notes_in(tmp_path), seconds=0.0)
        assert (found.newest["step"], found.newest["loss"], found.newest["epochs"]) == (999999, 0.25, 3)


def test_a_log_that_cannot_be_read_in_one_look_shows_its_end_and_never_its_middle(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    for slices in (1.5, 2.5):
        count = round(slices * SLICE_BYTES / len("step 123456 loss 0.123\n"))
        path.write_text("".join(f"step {at:6} loss {at / count:.3f}\n" for at in range(count + 1)))
        found = look(path, seconds=0.0)
        assert not found.complete
        assert (found.newest["step"], found.newest["loss"]) == (count, 1.0)


def test_what_ends_with_the_run_and_with_no_line_is_listed_too(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    run = RunBuilder(home).status("running").launch().output("epoch 1 loss 0.500\nepoch 2 loss 0.250").hold()
    assert list_rows(home, None)[0][0].json["loss"] == 0.5
    run.exit(code=0).release()
    assert list_rows(home, None)[0][0].json["loss"] == 0.25


def test_the_end_of_a_long_log_has_its_epochs_numbered_as_its_beginning_does(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    line = "Epoch {epoch} step {step:5}/10000 loss 0.500\n"
    path.write_text("".join(line.format(epoch=at // 5000, step=at % 5000) for at in range(20_000)))
    assert path.stat().st_size > 2 * SLICE_BYTES
    found = look(path, seconds=0.0)
    assert (found.complete, found.newest["epoch"], found.newest["first_epoch"]) == (False, 3, 0)


def test_live_runs_are_noted_and_ended_ones_forgotten(tmp_path: Path) -> None:
    home: Home = make_home(tmp_path)
    run = RunBuilder(home).status("running").launch().output("epoch 1/3 step 1 loss 0.5\n").hold()
    kept = home.state / "cache" / "logs.json"
    assert list_rows(home, None)[0][0].json["step"] == 1
    assert run.run.run in kept.read_text()
    run.output("epoch 2/3 step 2 loss 0.25\n")
    row = list_rows(home, None)[0][0].json
    assert (row["epoch"], row["epochs"], row["step"], row["loss"]) == (2, 3, 2, 0.25)
    run.release()
    run.exit(code=0).status("ended")
    assert list_rows(home, None)[0][0].json["loss"] == 0.25
    assert run.run.run not in kept.read_text()


def test_a_note_that_its_reader_stumbles_over_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home: Home = make_home(tmp_path)
    run = RunBuilder(home).status("running").launch().output("epoch 1/3 step 1 loss 0.5\n").hold()
    list_rows(home, None)
    run.output("epoch 2/3 step 2 loss 0.25\n")
    with monkeypatch.context() as patched:
        patched.setattr(LogReader, "take", lambda *_: 1 / 0)
        assert list_rows(home, None)[0][0].json["step"] == 1
    assert run.run.run not in (home.state / "cache" / "logs.json").read_text()
    assert list_rows(home, None)[0][0].json["step"] == 2
    run.release()
