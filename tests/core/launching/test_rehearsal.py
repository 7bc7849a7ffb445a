"""What a rehearsal tells of two attempts, and what it says could not be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from mpstui.core.diagnosis.remedy import Change
from mpstui.core.launching.choice import LaunchChoice
from mpstui.core.launching.editing import changes_between
from mpstui.core.launching.rehearsal import newest_rehearsal, rehearsal_of
from mpstui.core.model.snapshot import RunSnapshot, State
from mpstui.core.profiles.model import profile_of_command
from mpstui.wire import storage
from mpstui.wire.heartbeat import Heartbeat, MemoryReading, to_json
from mpstui.wire.records import ExitRecord, LaunchRecord, Rehearsal
from mpstui.wire.rundir import RunDir, create_run_dir

PLAIN = profile_of_command(("python", "train.py", "--batch_size", "64"), cwd=Path("/"))
HALVED = (Change("batch_size", "64", "32"), Change("grad_accum", "1", "2"))


def attempt(run: RunDir, number: int, log: Sequence[str], *, of: int = 0, seconds: float = 12.0, rss: int = 0) -> None:
    """One that has ended: killed as a rehearsal is, or by itself."""
    folder = run.attempt(number)
    folder.path.mkdir(parents=True)
    rehearsal = Rehearsal(of=of, before="batch_size 64", after="32 × 2") if of else None
    storage.write_json(folder.launch, LaunchRecord(number, 100.0, ["python"], "/", "cpu", rehearsal=rehearsal))
    folder.output.write_text("\n".join(log) + "\n")
    asked = {"requested_by": "rehearsal", "signal": 9} if of else {"code": 1}
    usage = {"max_rss_bytes": float(rss)} if rss else {}
    storage.write_json(folder.exit, ExitRecord(number, 100.0 + seconds, rusage=usage, **asked))


def lines(steps: int, factor: float = 1.0) -> list[str]:
    return [f"step {step}/500 loss {factor * 3 / step:.5f}" for step in range(1, steps + 1)]


def told(run: RunDir) -> str:
    found = newest_rehearsal(run)
    assert found is not None
    return found.sentence


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return create_run_dir(tmp_path, "net", 1.0)


def test_printed_steps_and_losses_are_compared_and_the_rest_is_said_to_be_unknown(run: RunDir) -> None:
    attempt(run, 1, lines(30), rss=2 << 30)
    attempt(run, 2, lines(50), of=1, rss=1 << 30, seconds=24)
    assert told(run) == (
        "batch_size 64: RAM 2.0 GiB ✗ → 32 × 2: RAM 1.0 GiB ✓, loss equal; 50 steps done, past step 30 where it "
        "failed; not compared, since not known for both: speed"
    )


def test_where_only_the_time_is_known_it_is_what_is_told(run: RunDir) -> None:
    attempt(run, 1, ["loading"])
    attempt(run, 2, ["loading"], of=1, seconds=30)
    assert told(run) == (
        "batch_size 64 ✗ → 32 × 2 ✓; no steps are known, it ran 30s (the failed one: 12s); "
        "not compared, since not known for both: memory, loss, speed"
    )


def test_a_rehearsal_that_did_not_come_as_far_as_the_failure_says_so(run: RunDir) -> None:
    attempt(run, 1, lines(400))
    attempt(run, 2, lines(20, factor=2.0), of=1)
    assert "loss up to 100% apart; 20 steps done, not yet at step 400 where it failed" in told(run)


def test_what_was_reported_beats_what_was_printed(run: RunDir) -> None:
    attempt(run, 1, lines(3), rss=1 << 20)
    attempt(run, 2, lines(3), of=1, rss=1 << 20)
    for number, held in ((1, 20), (2, 10)):
        beat = Heartbeat(
            1.0, 1, step=3 * number, steps_per_second=4.0 / number, memory=MemoryReading(driver=held << 30)
        )
        storage.write_json(run.attempt(number).heartbeat(), to_json(beat))
    assert told(run) == (
        "batch_size 64: 20.0 GiB ✗ → 32 × 2: 10.0 GiB ✓, loss equal, 0.50x the speed; 6 steps done, past step 3 "
        "where it failed"
    )


def seen(run: RunDir, number: int, steps: int, *, accumulate: int, apart: float = 0.0) -> None:
    """What the agent told of an attempt: its points are written in lots, the loss is that of one part of a batch."""
    path = run.metrics if number == 1 else RunDir(run.attempt(number).rehearsal).metrics
    path.parent.mkdir(parents=True, exist_ok=True)
    point = '{"time": %f, "attempt": %d, "step": %d, "loss": %f}\n'
    told = [(100.0, number, 1, 3 * (1 + apart)), (100.0001, number, steps - 1, 3 * (1 + apart) / (steps - 1))]
    path.write_text("".join(point % one for one in told))
    beat = Heartbeat(101.0, 1, step=steps, steps_per_second=40.0, accumulate=accumulate, loss_seen="backward")
    storage.write_json(run.attempt(number).heartbeat(), to_json(beat))


def test_the_loss_of_a_part_of_a_batch_is_not_compared_where_the_program_prints_its_own(run: RunDir) -> None:
    attempt(run, 1, lines(30))
    attempt(run, 2, lines(40), of=1)
    seen(run, 1, 30, accumulate=1)
    seen(run, 2, 40, accumulate=2, apart=0.2)
    assert "✓, loss equal, 1.00x the speed; 40 steps done, past step 30" in told(run)


@pytest.mark.parametrize("log", [["loading"], lines(80, factor=1.3)], ids=["nothing printed", "parts are counted"])
def test_a_loss_that_only_the_agent_saw_of_parts_of_batches_is_unknown(log: list[str], run: RunDir) -> None:
    attempt(run, 1, lines(30))
    attempt(run, 2, log, of=1)
    seen(run, 1, 30, accumulate=1)
    seen(run, 2, 40, accumulate=2, apart=0.2)
    assert "1.00x the speed; 40 steps done, past step 30 where it failed; not compared" in told(run)
    assert told(run).endswith("memory, loss")


FAILED = RunSnapshot(run="a", name="net", dir=Path("/none"), state=State.FAILED, seen=1.0, attempt=1)


@pytest.mark.parametrize(("lasted", "given"), [(2.0, 30.0), (40.0, 80.0), (9000.0, 300.0)])
def test_a_program_without_reports_is_given_twice_the_time_in_which_it_failed(
    lasted: float, given: float, run: RunDir
) -> None:
    attempt(run, 1, ["loading"], seconds=lasted)
    failed = replace(FAILED, dir=run.path)
    assert rehearsal_of(failed, HALVED, PLAIN).seconds == given
    storage.write_json(run.attempt(1).heartbeat(), to_json(Heartbeat(1.0, 1, step=3)))
    assert rehearsal_of(failed, HALVED, PLAIN).seconds == 300.0


def test_what_is_tried_is_told_in_short() -> None:
    def short(*changes: Change) -> tuple[str, str]:
        made = rehearsal_of(FAILED, changes, PLAIN)
        return made.before, made.after

    assert short(*HALVED) == ("batch_size 64", "32 × 2")
    assert short(Change("batch_size", "16", "8"), Change("grad_accum", "4", "8")) == ("batch_size 16 × 4", "8 × 8")
    assert short(Change("workers", "4", "0")) == ("workers 4", "0")
    assert short(*HALVED, Change("lr", "0.1", "0.01")) == ("batch_size 64, lr 0.1", "32 × 2, lr 0.01")
    assert short() == ("", "")


def test_what_a_person_wrote_in_the_form_is_what_is_told_and_not_the_remedy() -> None:
    before = LaunchChoice(PLAIN, env={"A": "1"})
    after = replace(before, sets={"batch_size": "16", "grad_accum": "4"}, env={"A": "2"}, device="cpu")
    assert [str(one) for one in changes_between(before, after, HALVED)] == [
        "batch_size 64 -> 16",
        "grad_accum 1 -> 4",
        "A 1 -> 2",
        "device auto -> cpu",
    ]


def test_a_variable_of_the_profile_is_told_as_it_was() -> None:
    profile = replace(profile_of_command(("python", "train.py"), cwd=Path("/")), env={"A": "1", "B": "2"})
    before = LaunchChoice(profile)
    after = replace(before, env={"A": "3"}, drop_env=("B", "C"))
    assert [str(one) for one in changes_between(before, after)] == ["A 1 -> 3", "B 2 -> unset", "C set -> unset"]
