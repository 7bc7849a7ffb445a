"""What is told of a run beside its numbers."""

from __future__ import annotations

from pathlib import Path

from mpstui.core.runs.details import Section, code_sentence, details
from mpstui.core.runs.monitor import Monitor
from mpstui.wire import storage
from mpstui.wire.records import Provenance
from mpstui.wire.rundir import RunDir

from .build import NOW, RunBuilder, make_home


def sections(folder: Path, run: RunDir) -> dict[str, Section]:
    return {one.title: one for one in details(Monitor(make_home(folder)).snapshot(run.run))}


def test_attempts_code_and_machine_are_told_newest_first(tmp_path: Path) -> None:
    built = RunBuilder(make_home(tmp_path), "digits", NOW, profile="digits").status("ended", attempt=2)
    built.launch(1).launch(2).exit(1, code=1).exit(2, code=0)
    run = built.run
    record = Provenance("c" * 40, "main", 2, True, "box", "Linux 6", "3.11", {"torch": "2.13.0"})
    storage.write_json(run.provenance, storage.to_json(record))
    run.source_diff.write_text("-old\n+new\n")
    found = sections(tmp_path, run)
    assert [label for label, _ in found["attempts"].pairs] == ["2", "1"]
    assert "exit code 1" in found["attempts"].pairs[1][1]
    code = dict(found["code"].pairs)
    assert code["commit"] == "cccccccccccc on main, 2 files changed"
    assert code["torch"] == "2.13.0"
    assert found["code"].lines == ("-old", "+new")
    assert dict(found["machine"].pairs)["host"] == "box"


def test_damaged_and_missing_records_leave_their_lines_out(tmp_path: Path) -> None:
    run = RunBuilder(make_home(tmp_path), "digits", NOW).status("ended").launch().exit(code=0).run
    assert "commit" not in dict(sections(tmp_path, run)["code"].pairs)
    run.provenance.write_text('{"commit": 7, "packages": [')
    assert "commit" not in dict(sections(tmp_path, run)["code"].pairs)
    storage.write_json(run.provenance, storage.to_json(Provenance("c" * 40, "main", 1)))
    assert sections(tmp_path, run)["code"].lines == ("the changes were not kept",)


def test_what_mpstui_did_not_start_has_no_records(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("step 1 loss 0.5\nstep 2 loss 0.4\n")
    monitor = Monitor(make_home(tmp_path))
    titles = [one.title for one in details(monitor.snapshot(monitor.watch(log)))]
    assert "attempts" not in titles


def test_a_commit_in_a_few_words() -> None:
    assert code_sentence(Provenance()) == ""
    assert code_sentence(Provenance(branch="main")) == "no commit yet on main, unchanged"
    assert code_sentence(Provenance("a" * 40, changed_files=1)) == "aaaaaaaaaaaa, 1 file changed"
