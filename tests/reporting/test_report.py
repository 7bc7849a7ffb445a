"""``report()``: what it writes, that it costs and harms nothing, and how it goes together with the agent."""

from __future__ import annotations

import ast
import errno
import json
import math
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import mpstui
from mpstui import reporting
from mpstui.agent.reporter import Reporter
from mpstui.core.runs.numbers import REPORT
from mpstui.reporting import Report
from mpstui.wire import heartbeat, rundir
from mpstui.wire.heartbeat import CheckpointNote
from mpstui.wire.records import Request
from mpstui.wire.rundir import RunDir
from tests.agent.test_old_pythons import OLD, pythons
from tests.waiting import wait_until

SOURCE = Path(mpstui.__file__).with_name("reporting.py")


def report_to(folder: Path, **environ: str) -> Report:
    return Report({"MPSTUI_RUN_DIR": str(folder), **environ})


def points(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def events(folder: Path) -> list[dict[str, Any]]:
    path = folder / "events.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def beat(folder: Path, rank: int = 0) -> heartbeat.Heartbeat:
    found = heartbeat.read(RunDir(folder).attempt(1).heartbeat(rank))
    assert found is not None
    return found


def test_without_a_run_it_does_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    report = Report({})
    report(loss=1.0, step=1)
    with report.phase("evaluating", expect_seconds=3):
        report.checkpoint("w.pt", step=1)
    report.config({"lr": 0.1})
    report.text("hello")
    assert not report.is_on
    assert list(tmp_path.iterdir()) == []


def test_a_line_for_each_word_and_a_heartbeat(tmp_path: Path) -> None:
    report = report_to(tmp_path, MPSTUI_ATTEMPT="1")
    report(loss=0.5, step=1, steps=100, epoch=1, epochs=3, learning_rate=0.1)
    report({"val/acc": 0.75}, grad_norm=2)
    report(loss=0.25, step=2, unknown=None)
    assert report._run is not None
    report._run._lines.flush()  # where a write took long the next ones wait
    told = [{name: value for name, value in one.items() if name != "time"} for one in points(tmp_path)]
    assert told == [
        {"attempt": 1, "step": 1, "epoch": 1, "loss": 0.5, "lr": 0.1},
        {"attempt": 1, "step": 1, "epoch": 1, "val/acc": 0.75, "grad_norm": 2},
        {"attempt": 1, "step": 2, "epoch": 1, "loss": 0.25},
    ]
    first = beat(tmp_path)
    assert (first.step, first.steps, first.epoch, first.epochs, first.loss, first.lr) == (1, 100, 1, 3, 0.5, 0.1)
    assert (first.phase, first.pid, first.rank) == ("train", os.getpid(), 0)
    assert (first.expect_next_in or 0) >= 60
    report(steps=200)  # the end is another one: told at once
    assert beat(tmp_path).steps == 200
    assert beat(tmp_path).metrics == {"val/acc": 0.75, "grad_norm": 2}


def test_numbers_of_any_kind_and_none_that_is_made_up(tmp_path: Path) -> None:
    class Tensor:
        is_cpu, reads = False, 0

        def detach(self) -> Tensor:
            return self

        def item(self) -> float:
            Tensor.reads += 1
            return 0.5

    report = report_to(tmp_path)
    report(loss=math.nan, high=math.inf, flag=True, text="warm", big=10**400, huge=2**70, step=1)
    assert beat(tmp_path).nonfinite == ("loss", "high")
    assert beat(tmp_path).loss is None
    report({'odd "name"\\\n': 1.0, "精度": 0.5, "time": 3.0})
    for step in range(2, 50):
        report(loss=Tensor(), step=step)
    assert Tensor.reads == 1  # one on a device is read once a second: reading waits for it
    report.phase("saving")
    assert Tensor.reads == 2
    found = points(tmp_path)
    assert found[0].items() >= {"loss": None, "high": None, "flag": 1.0, "huge": float(2**70)}.items()
    assert found[1].keys() == {"time", "attempt", "step", "odd 'name'/ ", "精度"}
    assert (found[2]["step"], found[-1]["step"], found[-1]["loss"]) == (2, 49, 0.5)
    left_out = [one["text"].partition("=")[0] for one in events(tmp_path)]
    assert left_out == ["report(text", "report(big", "report(time"]


def test_a_total_below_0_is_unknown_from_then_on(tmp_path: Path) -> None:
    """Frameworks call it -1 where nobody knows how many steps there will be; and what was said may prove wrong."""
    report = report_to(tmp_path)
    report(step=1, steps=100, epochs=3, loss=1.0)
    assert beat(tmp_path).steps == 100
    for step in range(2, 500):
        report(step=step, steps=-1, epochs=3, loss=1.0)
    report.phase("training")
    assert (beat(tmp_path).steps, beat(tmp_path).epochs, beat(tmp_path).step) == (None, 3, 499)
    assert points(tmp_path)[-1].items() >= {"step": 499, "loss": 1.0}.items()
    assert not any("steps" in point for point in points(tmp_path))
    report(steps=600, epoch_steps=-1, step=-1)
    assert (beat(tmp_path).step, beat(tmp_path).epoch_steps) == (499, None)
    assert beat(tmp_path).steps == 600


def test_epochs_that_begin_with_0_say_so(tmp_path: Path) -> None:
    report = report_to(tmp_path)
    for epoch in range(2):
        report(epoch=epoch, epochs=2, loss=1.0)
    assert [(one["epoch"], one["first_epoch"]) for one in points(tmp_path)] == [(0, 0), (1, 0)]


def test_a_later_attempt_counts_its_epochs_from_where_the_first_one_did(tmp_path: Path) -> None:
    report_to(tmp_path)(epoch=0, epochs=5)
    report_to(tmp_path, MPSTUI_ATTEMPT="2")(epoch=4, epochs=5)
    assert json.loads(RunDir(tmp_path).attempt(2).heartbeat().read_text())["first_epoch"] == 0


def test_a_phase_is_told_at_once_and_left_again(tmp_path: Path) -> None:
    report = report_to(tmp_path)
    report(step=1, loss=1.0)
    with report.phase("evaluating", expect_seconds=300):
        assert (beat(tmp_path).phase, beat(tmp_path).expect_next_in) == ("eval", 300)
    assert beat(tmp_path).phase == "train"
    report.phase("tokenizing")
    assert (beat(tmp_path).phase, beat(tmp_path).doing) == ("setup", "tokenizing")
    report(step=2)
    report.checkpoint(tmp_path / "w.pt", best=True)
    assert beat(tmp_path).phase == "train"
    note = beat(tmp_path).checkpoint
    assert note is not None
    assert (note.path, note.step) == (str(tmp_path / "w.pt"), 2)
    assert events(tmp_path)[-1].items() >= {"event": "checkpoint", "step": 2, "best": True}.items()


def test_numbers_that_neither_count_nor_train_say_nothing_of_the_phase(tmp_path: Path) -> None:
    """A number may be reported before the training, or all along one that counts its steps in its log alone."""
    report = report_to(tmp_path)
    report(accuracy=0.1)
    assert (beat(tmp_path).phase, beat(tmp_path).metrics) == (None, {"accuracy": 0.1})
    report.phase("setup")
    assert beat(tmp_path).phase == "setup"


def test_settings_and_texts_without_secrets(tmp_path: Path) -> None:
    report = report_to(tmp_path)
    report.config({"lr": 0.1, "hub_token": "hf_0123456789", "model": {"pad_token": "<pad>", "size": {1}}})
    report.config({"seed": 7}, api_key="xyz", odd=math.nan)
    report.text("once upon a time", name="sample", step=3)
    found = json.loads((RunDir(tmp_path).attempt(1).path / "config.json").read_text())
    assert found == {
        "lr": 0.1,
        "hub_token": "(not written)",
        "model": {"pad_token": "<pad>", "size": [1]},
        "odd": "nan",
        "seed": 7,
        "api_key": "(not written)",
    }
    assert events(tmp_path)[0].items() >= {"event": "text", "name": "sample", "step": 3}.items()


def test_settings_of_any_size_and_shape(tmp_path: Path) -> None:
    class Odd:
        def __str__(self) -> str:
            raise ValueError("no words")

    report, around = report_to(tmp_path), dict[str, Any]()
    around["again"] = around
    report.config(SimpleNamespace(lr=0.1, odd=Odd(), big=10**5000, password={"of": "x"}, around=around))
    path = RunDir(tmp_path).attempt(1).config
    found = json.loads(path.read_text())
    assert list(found) == ["lr", "odd", "big", "password", "around"]
    assert (found["odd"], found["password"], events(tmp_path)) == ("(Odd)", "(not written)", [])
    changed = path.stat().st_ino
    report.config(lr=0.1)
    assert path.stat().st_ino == changed  # nothing new to be written
    report.config({f"layer{number}": {"rows": [1, 2]} for number in range(20_000)})
    assert len(path.read_text()) < 1 << 20
    assert [one["text"].partition(":")[0] for one in events(tmp_path)] == ["report.config(...) keeps 10,000 settings"]


def test_what_a_call_cannot_mean_costs_itself(tmp_path: Path) -> None:
    report = report_to(tmp_path)
    report.config(5)
    report.checkpoint(None)  # type: ignore[arg-type]
    report(7)  # type: ignore[arg-type]
    report(loss=1.0, step=1)
    assert len(points(tmp_path)) == 1
    assert [one["text"].partition(",")[0] for one in events(tmp_path)] == ["report(): what one call says is left out"]


def ask(folder: Path, action: str) -> Request:
    return rundir.submit(RunDir(folder), rundir.new_request(action, 1, time.time()))


def test_requests_are_carried_out_by_the_program(tmp_path: Path) -> None:
    report, run = report_to(tmp_path), RunDir(tmp_path)
    assert not report.requested("save")
    report(step=7)
    save, cache, evaluate = (ask(tmp_path, action) for action in ("save", "clear_cache", "evaluate"))
    wait_until(lambda: report.requested("save"), what="the request")
    assert not report.requested("save")
    assert report.requested("evaluate")
    report.checkpoint("w.pt")
    answers = [rundir.answer_to(run, one.id) for one in (save, evaluate, cache)]
    texts = [(one.ok, one.by, one.text) if one else None for one in answers]
    assert texts == [
        (True, "trainer", f"saved {os.path.abspath('w.pt')}"),  # noqa: PTH100
        (True, "trainer", "it evaluates after step 7"),
        None,
    ]
    assert report.requested("clear_cache")
    report.answer("clear_cache", "freed 1 MiB", before=3, after=2, freed=1)
    found = rundir.answer_to(run, cache.id)
    assert found is not None
    assert (found.before, found.after, found.freed) == (3, 2, 1)
    report(steps=9)
    assert beat(tmp_path).answers == ("save", "evaluate", "clear_cache")


def test_an_evaluation_is_promised_at_a_step_only_where_steps_are_counted(tmp_path: Path) -> None:
    report = report_to(tmp_path)
    report.takes("evaluate")
    evaluate = ask(tmp_path, "evaluate")
    wait_until(lambda: report.requested("evaluate"), what="the request")
    found = rundir.answer_to(RunDir(tmp_path), evaluate.id)
    assert found is not None
    assert found.text == "it evaluates"


def test_what_cannot_be_done_is_answered_with_why(tmp_path: Path) -> None:
    report, run = report_to(tmp_path), RunDir(tmp_path)
    report.refuses("evaluate", "there is nothing to evaluate on")
    evaluate, save = ask(tmp_path, "evaluate"), ask(tmp_path, "save")
    wait_until(lambda: report.requested("save"), what="the request")
    found = rundir.answer_to(run, evaluate.id)
    assert found is not None
    assert (found.ok, found.by, found.text) == (False, "trainer", "there is nothing to evaluate on")
    assert rundir.answer_to(run, save.id) is None
    assert not report.requested("evaluate")
    report(step=1)
    assert beat(tmp_path).answers == ("evaluate", "save")

    report.takes("evaluate")
    ask(tmp_path, "evaluate")
    wait_until(lambda: report.requested("evaluate"), what="the request")


def test_the_agent_leaves_the_program_what_it_carries_out(both: tuple[Report, Reporter], tmp_path: Path) -> None:
    report, agent = both
    assert not report.requested("save")
    ask(tmp_path, "save")
    cache = ask(tmp_path, "clear_cache")
    assert [one.id for one in agent.requests()] == [cache.id]
    wait_until(lambda: report.requested("save"), what="the request")


STOPS = """
import os, signal, time
from words import report
asked = [report.requested("stop")]
report(step=1, loss=1.0)
os.kill(os.getpid(), signal.SIGTERM)
for _ in range(1000):
    asked.append(report.requested("stop"))
    if asked[-1]: break
    time.sleep(0.01)
report(step=2, loss=1.0)
print(asked[0], asked[-1], report.requested("stop"), flush=True)
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(60)
"""


def test_the_first_signal_asks_to_save_and_end_the_second_one_ends(tmp_path: Path) -> None:
    assert program(tmp_path, STOPS) == "False True True\n"
    assert (beat(tmp_path).phase, beat(tmp_path).answers) == ("save", ("stop",))


BETWEEN = """
import json, os, signal
from words import report
report.takes("stop")
report(step=1, loss=1.0)
os.kill(os.getpid(), signal.SIGTERM)
report.joins({"phase": "train"}, lambda: 1)
print(json.load(open(os.environ["MPSTUI_RUN_DIR"] + "/attempts/1/heartbeat.json"))["phase"], report.requested("stop"))
"""


def test_a_stop_in_the_middle_of_a_long_step_is_given_the_time_to_save(tmp_path: Path) -> None:
    """PPO asks between rollouts, which lie minutes apart: until then the agent's beats say what it is about to do."""
    assert program(tmp_path, BETWEEN) == "save True\n"


def test_ranks_agree_on_the_step_at_which_they_do_it(tmp_path: Path) -> None:
    ranks = [report_to(tmp_path, RANK=str(rank), WORLD_SIZE="2") for rank in (0, 1)]
    did: list[tuple[int, int]] = []
    for step in range(1, 8):
        for rank, report in enumerate(ranks if step % 2 else reversed(ranks)):
            report(step=step)
            did += [(step, rank)] if report.requested("save") else []
        if step == 2:
            ask(tmp_path, "save")
            time.sleep(0.3)
    assert sorted(one[0] for one in did) == [5, 5]


def test_a_full_disk_costs_nothing_but_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report, plain, now = report_to(tmp_path), os.write, [1000.0]
    monkeypatch.setattr("mpstui.reporting.time.monotonic", lambda: now[0])
    report(loss=1.0, step=1)

    def no_room(descriptor: int, data: bytes) -> int:
        if data.startswith(b'{"time"') and b'"step": 2' in data:
            return plain(descriptor, data[:10])  # as much as there is room for
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", no_room)
    for step in range(2, 5):
        report(loss=1.0, step=step)
    monkeypatch.setattr(os, "write", plain)
    now[0] += 60
    report(loss=1.0, step=5)
    assert [one["step"] for one in points(tmp_path)] == [1, 2, 3, 4, 5]


def test_half_a_line_of_an_earlier_attempt_costs_itself(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"time": 1, "at')
    report_to(tmp_path)(loss=1.0, step=1)
    assert json.loads((tmp_path / "metrics.jsonl").read_text().splitlines()[1])["step"] == 1


def test_nothing_comes_out_of_it(tmp_path: Path) -> None:
    class Bad:
        @property
        def item(self) -> float:
            raise ZeroDivisionError("a surprise")

    report = report_to(tmp_path)
    report(loss=1.0, step=1)
    report(loss=Bad())
    report(loss=2.0, step=2)
    assert len(points(tmp_path)) == 1
    assert "the training goes on (ZeroDivisionError" in events(tmp_path)[0]["text"]
    report_to(tmp_path / "no" / "\0")(loss=1.0)
    (tmp_path / "file").touch()
    report_to(tmp_path / "file")(loss=1.0)


def test_threads_write_whole_lines(tmp_path: Path) -> None:
    report = report_to(tmp_path)

    def work(number: int) -> None:
        for step in range(200):
            report({f"loss{number}": float(step)})

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report.phase("saving")
    assert len(points(tmp_path)) == 1200


def test_threads_that_take_turns_at_every_step_lose_and_mix_up_nothing(tmp_path: Path) -> None:
    report, before = report_to(tmp_path), sys.getswitchinterval()
    report(step=0, **{f"loss{number}": 0.5 for number in range(4)})

    def work(number: int) -> None:
        for step in range(number, 4000, 4):
            report({f"loss{number}": float(step)}, step=step)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    report.phase("saving")
    told = [(point["step"], point[name]) for point in points(tmp_path)[1:] for name in point if "loss" in name]
    assert sorted(told) == [(step, float(step)) for step in range(4000)]


def test_one_process_speaks_for_each_rank(tmp_path: Path) -> None:
    first, second, other = report_to(tmp_path), report_to(tmp_path), report_to(tmp_path, RANK="1", WORLD_SIZE="2")
    first(loss=1.0, step=1)
    second(loss=9.0, step=9)
    other(loss=5.0, step=1)
    assert [one["loss"] for one in points(tmp_path)] == [1.0]
    assert (beat(tmp_path).loss, beat(tmp_path, 1).loss, beat(tmp_path, 1).world_size) == (1.0, 5.0, 2)


def program(folder: Path, code: str, *flags: str, python: str = sys.executable, **environ: str) -> str:
    """Run ``code`` in a process of its own, beside a copy of the file that is called ``words``; what it prints."""
    copy = folder / "alone" / "words.py"
    copy.parent.mkdir(exist_ok=True)
    shutil.copy(SOURCE, copy)
    code = f"import sys; sys.path.insert(0, {str(copy.parent)!r})\n{code}"
    done = subprocess.run(
        [python, "-S", *flags, "-c", code],
        env={"MPSTUI_RUN_DIR": str(folder), **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr or "meant" in done.stderr, done.stderr
    return done.stdout


FORKS = """
import os, words
from words import report
def forked(work):
    child = os.fork()
    if not child:
        work()
        sys.exit()
    os.waitpid(child, 0)
forked(lambda: report(loss=1.0, step=1))
report(loss=2.0, step=2)
forked(lambda: report(loss=3.0, step=3))
report(loss=4.0, step=4)
print("multiprocessing" in sys.modules)
"""


@pytest.mark.parametrize("python", [sys.executable, *pythons(OLD)])
def test_a_copy_of_the_file_works_alone_and_in_forks(python: str, tmp_path: Path) -> None:
    assert program(tmp_path, FORKS, python=python) == "False\n"
    assert [one["loss"] for one in points(tmp_path)] == [1.0, 2.0, 4.0]
    assert (beat(tmp_path).phase, beat(tmp_path).loss) == ("done", 4.0)


COPIES = """
import {first} as one, {second} as other
one.report(loss=1.0, step=1)
other.report(loss=2.0, step=2)
other.report.image("x", [1])
with other.report.phase("evaluating"): pass
other.report.from_the_future(5)
print(one.report.version, other.report.version, other.report.is_on)
"""


@pytest.mark.parametrize(("first", "served"), [("old", "0.9"), ("new", "9.10")])
@pytest.mark.parametrize("python", [sys.executable, *pythons(("3.9",))])
def test_copies_of_different_versions_go_together(python: str, first: str, served: str, tmp_path: Path) -> None:
    """An older one lacks methods, a newer one writes what nobody knows yet."""
    (tmp_path / "alone").mkdir()
    source = SOURCE.read_text()
    old = source.replace('VERSION = "1.1"', 'VERSION = "0.9"').replace("def image(", "def not_yet(")
    new = source.replace('VERSION = "1.1"', 'VERSION = "9.10"').replace(
        '"schema": 1, ', '"schema": 1, "mood": {"x": 1}, '
    )
    new = new.replace("def image(", "def from_the_future(self, *_): pass\n\n    def image(")
    assert len({source, old, new}) == 3
    (tmp_path / "alone" / "old.py").write_text(old)
    (tmp_path / "alone" / "new.py").write_text(new)
    second = "new" if first == "old" else "old"
    code = COPIES.format(first=first, second=second).replace("other.report.from", "new.report.from")
    found = program(tmp_path, f"import {first}, new\n{code}", python=python)
    assert found == f"{served} {served} True\n"
    assert [one["loss"] for one in points(tmp_path)] == [1.0, 2.0]
    assert (beat(tmp_path).phase, beat(tmp_path).loss) == ("done", 2.0)


SPAWNED = """
import multiprocessing, words
def work(): words.report(loss=1.0, step=1)
words.report.config({"seed": 1})
process = multiprocessing.get_context("fork").Process(target=work)
process.start()
process.join()
"""


def test_a_training_in_a_process_of_multiprocessing_is_done_too(tmp_path: Path) -> None:
    program(tmp_path, SPAWNED)
    assert (beat(tmp_path).phase, beat(tmp_path).loss) == ("done", 1.0)


LOADED = """
import multiprocessing, sys, types, words
loads = sys.modules["torch.utils.data._utils.worker"] = types.SimpleNamespace(_worker_info=None)
def load():
    loads._worker_info = "of the first of two"
    words.report(loss=9.0, step=1000)
process = multiprocessing.get_context("fork").Process(target=load)
process.start()
process.join()
words.report(loss=1.0, step=1)
"""


def test_a_worker_of_a_data_loader_speaks_for_no_training(tmp_path: Path) -> None:
    """Not even where it has something to say before the training does."""
    from torch.utils.data._utils import worker

    assert hasattr(worker, "_worker_info")
    program(tmp_path, LOADED)
    assert [(one["step"], one["loss"]) for one in points(tmp_path)] == [(1, 1.0)]
    assert (beat(tmp_path).phase, beat(tmp_path).step) == ("done", 1)


def test_a_notebook_ends_well_though_a_cell_has_failed(tmp_path: Path) -> None:
    failed = "import sys, types, words; sys.modules['ipykernel'] = types.ModuleType('ipykernel'); sys.last_value = 1"
    program(tmp_path, f"{failed}; words.report(loss=1.0, step=1)")
    assert beat(tmp_path).phase == "done"


def test_an_exception_is_no_end(tmp_path: Path) -> None:
    program(tmp_path, "from words import report; report(loss=1.0, step=1); raise ValueError('meant')")
    assert beat(tmp_path).phase == "train"


def test_importing_it_brings_next_to_nothing(tmp_path: Path) -> None:
    ast.parse(SOURCE.read_text(), feature_version=(3, 9))
    code = "import os; before = set(sys.modules); import words; print(sorted(set(sys.modules) - before))"
    assert program(tmp_path, code) == "['__future__', '_mpstui_report', 'atexit', 'words']\n"
    code = f"sys.path.append({str(SOURCE.parent.parent)!r}); from mpstui import report; import words\n"
    code += "print(words.report is report, sorted(name for name in sys.modules if 'mpstui' in name))"
    assert program(tmp_path, code) == "True ['_mpstui_report', 'mpstui', 'mpstui.reporting']\n"


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Report, Reporter]:
    """A program that reports, and the agent in the same process."""
    report = report_to(tmp_path)
    monkeypatch.setattr(sys.modules["_mpstui_report"], "report", report)
    return report, Reporter(RunDir(tmp_path), by="agent")


@pytest.mark.parametrize("step", [None, math.nan, "four"])
def test_a_step_that_is_none_is_not_compared_with_the_agents(
    step: Any, both: tuple[Report, Reporter], tmp_path: Path
) -> None:
    """As Accelerate's tracker says it, where the loop gives its numbers no step."""
    report, agent = both
    agent.count = lambda: 4
    report(epochs=3)
    agent.beat("train", now=True, step=4, epoch=1)
    report({"acc": 0.5, "epoch": 0}, step=step)
    report(acc=0.75)
    agent.beat("train", now=True, step=5, epoch=2)  # with it what waits is written, too
    assert [one["acc"] for one in points(tmp_path) if "acc" in one] == [0.5, 0.75]
    assert not [one for one in events(tmp_path) if "is off" in one["text"]]
    assert (beat(tmp_path).step, beat(tmp_path).epoch, beat(tmp_path).epochs) == (5, 1, 3)  # of those from 0


def test_the_agent_adds_what_the_program_does_not_say(both: tuple[Report, Reporter], tmp_path: Path) -> None:
    report, agent = both
    agent.count = lambda: 8  # two batches to a step, say
    agent.beat("train", step=4, steps=50, epoch=1, loss=9.0, lr=0.1, loss_seen="backward", step_from="process")
    assert (beat(tmp_path).loss, beat(tmp_path).reported) == (9.0, ())
    report(loss=1.0, step=16)
    agent.beat("eval", now=True, step=8, steps=50, epoch=1, loss=9.0, lr=0.1, batch_size=32, epoch_steps=25)
    agent.point(8, 1.0, loss=9.0, lr=0.1)
    agent.point(9, 1.0, loss=9.0)
    both_said = beat(tmp_path)
    assert (both_said.loss, both_said.step, both_said.steps, both_said.lr) == (1.0, 16, None, 0.1)
    assert (both_said.phase, both_said.batch_size, both_said.loss_seen) == ("eval", 32, None)
    assert set(both_said.reported) == {"loss", "step"}
    assert [one.get("loss", one.get("lr")) for one in points(tmp_path)] == [1.0, 0.1]
    assert points(tmp_path)[1]["step"] == 16


def test_a_total_that_the_program_says_nobody_knows_is_not_the_agents_either(
    both: tuple[Report, Reporter], tmp_path: Path
) -> None:
    """The agent sees a data loader of 200 batches, the program that it leaves each epoch early."""
    report, agent = both
    agent.count = lambda: 1
    report(step=1, epoch=1, steps=-1, epoch_steps=-1, loss=1.0)
    agent.beat("train", step=1, epoch=1, steps=600, epoch_steps=200, now=True)
    report.phase("training")
    assert (beat(tmp_path).step, beat(tmp_path).steps, beat(tmp_path).epoch_steps) == (1, None, None)


@pytest.mark.parametrize("first", [{"step": 32, "epoch": 2}, {"epoch": 2, "steps": 96}])
def test_a_training_that_goes_on_tells_of_its_first_step_alone(
    both: tuple[Report, Reporter], tmp_path: Path, first: dict[str, int]
) -> None:
    report, agent = both
    report(first)  # where it is
    agent.point(33, 2.0, loss=9.0, lr=0.1)
    report(step=33, loss=9.0)
    agent.point(34, 2.0, loss=8.0, lr=0.1)
    told = [(one.get("step"), one.get("loss"), one.get("lr")) for one in points(tmp_path)]
    assert told == [(first.get("step"), None, None), (33, 9.0, None), (34, None, 0.1)]


def test_a_loss_that_the_agent_sees_within_a_step_is_not_that_of_the_step_before(
    both: tuple[Report, Reporter], tmp_path: Path
) -> None:
    report, agent = both
    for step in (32, 33, 34):
        report(step=step)
        agent.point(step + 1, 2.0, loss=9.0)
    assert [one["step"] for one in points(tmp_path) if "loss" in one] == [34, 35]


def test_what_was_logged_at_an_earlier_step_keeps_its_step(both: tuple[Report, Reporter], tmp_path: Path) -> None:
    report, agent = both
    agent.count, counted = lambda: counted[0], [150]
    agent.beat("train", now=True, step=150, epoch=1)
    report(step=150, epoch=1, loss=1.0)
    counted[0] = 171
    for step in range(151, 172):
        report(step=step, epoch=2)
    agent.point(150, None, **{"validation/loss": 0.5})  # written for TensorBoard since the last heartbeat
    told = [one for one in points(tmp_path) if "validation/loss" in one]
    assert [(one["step"], one.get("epoch")) for one in told] == [(150, None)]


def test_what_a_callback_said_that_is_off_is_the_agents_to_tell(both: tuple[Report, Reporter], tmp_path: Path) -> None:
    report, agent = both
    agent.beat("train", step=1, steps=50)
    report(step=1, loss=3.0, epoch=1)
    report.phase("evaluating", expect_seconds=3600)
    report.leaves(forgets=True)
    agent.beat("train", now=True, step=9, steps=50, loss=2.0)
    agent.point(9, 1.0, loss=2.0)
    told = beat(tmp_path)
    assert (told.step, told.steps, told.loss, told.epoch, told.reported) == (9, 50, 2.0, None, ())
    assert (points(tmp_path)[-1]["step"], points(tmp_path)[-1]["loss"]) == (9, 2.0)


def test_totals_of_the_agent_serve_where_it_counts_the_same(both: tuple[Report, Reporter], tmp_path: Path) -> None:
    report, agent = both
    agent.count = lambda: 8
    report(step=7)
    agent.beat("train", step=7, steps=50)
    assert beat(tmp_path).steps is None  # not compared yet: no step was told since it speaks
    report(step=8, epochs=2)
    assert (beat(tmp_path).steps, beat(tmp_path).reported) == (50, ("step", "epochs"))


def test_counters_that_are_told_once_an_epoch_go_on_as_the_agent_counts(
    both: tuple[Report, Reporter], tmp_path: Path
) -> None:
    report, agent = both
    counted = [0]
    agent.count = lambda: counted[0]

    def train(until: int, epoch: int) -> None:
        counted[0] = until
        agent.beat("train", now=True, step=until, epoch=epoch, epoch_steps=8)
        agent.point(until, epoch, loss=3.0)

    train(6, 1)
    counted[0] = 8
    report(accuracy=0.5, epoch=0, step=8)  # behind the first epoch, which it calls 0
    train(8, 1)
    assert (beat(tmp_path).step, beat(tmp_path).epoch, beat(tmp_path).epoch_steps) == (8, 0, 8)
    train(13, 2)
    assert (beat(tmp_path).step, beat(tmp_path).epoch) == (13, 1)
    assert [(one["step"], one["epoch"]) for one in points(tmp_path)] == [(6, 1), (8, 0), (8, 0), (13, 1)]
    report(step=40)  # micro-batches, say
    train(14, 2)
    assert (beat(tmp_path).step, points(tmp_path)[-1]["step"]) == (40, 40)


def test_an_epoch_that_is_told_at_its_end_goes_on_beside_steps_that_are_told_each_time(
    both: tuple[Report, Reporter], tmp_path: Path
) -> None:
    report, agent = both
    for step in range(1, 21):
        agent.count = lambda step=step: step  # type: ignore[misc]
        agent.beat("train", now=True, step=step, epoch=1 + (step - 1) // 8, epoch_steps=8)
        report(loss=1.0, step=step)
        if step % 8 == 0:
            report(accuracy=0.5, epoch=step // 8 - 1, step=step)  # the first is called 0
        agent.beat("train", now=True, step=step, epoch=1 + (step - 1) // 8, epoch_steps=8)
        if step >= 8:
            assert beat(tmp_path).epoch == (step - 1) // 8


def test_a_checkpoint_between_two_reports_has_the_step_that_the_agent_counts_alike(
    both: tuple[Report, Reporter], tmp_path: Path
) -> None:
    report, agent = both
    counted = [30]
    agent.count = lambda: counted[0]
    agent.beat("train", now=True, step=30, epoch=1, epoch_steps=30)
    report(accuracy=0.5, epoch=1, step=30)  # once an epoch
    counted[0] = 40
    report.checkpoint(tmp_path / "a.pt")
    report(step=120)  # micro-batches, say
    report.checkpoint(tmp_path / "b.pt")
    events = (json.loads(line) for line in RunDir(tmp_path).events.read_text().splitlines())
    assert [one["step"] for one in events if one["event"] == "checkpoint"] == [40, 120]


def test_a_checkpoint_that_both_have_seen_is_told_once(both: tuple[Report, Reporter], tmp_path: Path) -> None:
    report, agent = both
    report.checkpoint(tmp_path / "a.pt", step=3)
    report.has_saved(str(tmp_path / "copied.pt"), is_told=True)  # as that of Ultralytics, which is emptied at the end
    for name in ("a.pt", "b.pt", "copied.pt"):
        agent.saved(CheckpointNote(str(tmp_path / name), 3, 1.0))
    told = [json.loads(line)["path"] for line in RunDir(tmp_path).events.read_text().splitlines()]
    assert told == [str(tmp_path / "a.pt"), str(tmp_path / "b.pt")]


def test_what_is_reported_is_shown_as_reported(both: tuple[Report, Reporter], tmp_path: Path) -> None:
    from mpstui.core.model.home import Home
    from mpstui.core.runs.monitor import Monitor

    run = tmp_path / "runs" / "20261123-072001-t"
    output = RunDir(run).attempt(1).output
    output.parent.mkdir(parents=True)
    output.write_text("epoch 1/3 step 1 loss 9.0 acc 0.1\nepoch 2/3 step 2 loss 8.0 acc 0.2\n")
    report = report_to(run)
    report(loss=0.5, step=10, steps=20)
    monitor = Monitor(Home(state=tmp_path, config=tmp_path))
    snapshot = monitor.snapshot(run.name)
    assert set(snapshot.series) == {"loss"}
    assert snapshot.series["loss"].last == 0.5
    assert (snapshot.numbers.step, snapshot.numbers.steps) == (10, 20)
    assert {snapshot.numbers.told_by[name] for name in ("loss", "step", "steps")} == {REPORT}
    assert (snapshot.numbers.epoch, snapshot.numbers.epochs) == (2, 3)  # which it did not say itself


def _write_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after half a second of calls that come fast."""
    monkeypatch.setattr(reporting, "MOST_CREDIT_SECONDS", 0.0)
    monkeypatch.setattr(reporting, "WRITING_SHARE", 0.001)


def _told(folder: Path, calls: Sequence[Mapping[str, Any]], *, at_once: bool) -> tuple[object, ...]:
    """Points, events and last heartbeat of these calls, without their times; ``at_once``: each makes its own line."""
    report = report_to(folder)
    for said in calls:
        if "phase" in said:
            report.phase(said["phase"])
        elif "text" in said:
            report.text(said["text"])
        else:
            report(**said)
        if at_once and report._run is not None:
            report._run.retire()
            report._run._shape = None
    report.phase("training")
    assert report._run is not None
    report._run._events.flush()
    last = beat(folder)
    told = points(folder) + events(folder)
    found = [{name: repr(value) for name, value in one.items() if name != "time"} for one in told]  # zeros have a sign
    return found, last.step, last.steps, last.epoch, last.loss, last.lr, last.metrics, last.nonfinite


@pytest.mark.parametrize("seed", range(8))
def test_calls_that_come_fast_tell_the_same_as_one_by_one(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs of calls with the same names, broken by others, by numbers that are not finite, epochs and phases."""
    _write_seldom(monkeypatch)
    chance, calls, step, epoch = random.Random(seed), list[dict[str, Any]](), 0, 1
    shapes = (("loss",), ("loss", "lr"), ("val%acc", "loss"), ("learning_rate", "count"))
    while len(calls) < 3000:
        names, total = chance.choice(shapes), chance.choice(({}, {"steps": 5000}, {"epoch": epoch}))
        step_first, held = chance.random() < 0.5, chance.choice(((), names[:1], names))
        values = chance.choice(((0.001, 0.001), (0.0, -0.0)))
        for _ in range(chance.choice((1, 2, 3, 40, 300))):
            step += 1
            if "epoch" in total and chance.random() < 0.02:
                epoch += 1
                total = {"epoch": epoch}
            numbers: dict[str, Any] = {name: chance.choice((chance.random(), -1e-9, 1e17)) for name in names}
            numbers |= {name: chance.choice(values) for name in held}
            numbers |= {"count": step % 7} if "count" in names else {}
            said = {"step": step, **numbers, **total} if step_first else {**numbers, "step": step, **total}
            if chance.random() < 0.001:
                said["loss"] = chance.choice((math.nan, math.inf, 1e300, None, True, "0.5", 2**70))
            calls.append(said)
        if chance.random() < 0.2:
            epoch += 1
            calls.append({"epoch": epoch})
        if chance.random() < 0.1:
            calls.append({"phase": "evaluating"})
        if chance.random() < 0.3:
            calls.append({"text": "here"})
    assert _told(tmp_path / "fast", calls, at_once=False) == _told(tmp_path / "slow", calls, at_once=True)
    assert len(points(tmp_path / "fast")) >= len([said for said in calls if said.keys() & {"loss", "count"}])


def test_threads_that_report_fast_lose_no_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write_seldom(monkeypatch)
    report = report_to(tmp_path)

    def tell(name: str) -> None:
        for step in range(5000):
            report(**{name: step / 2}, step=step)

    threads = [threading.Thread(target=tell, args=(name,)) for name in ("first", "second", "first", "third")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report.phase("training")
    found = points(tmp_path)
    for name, times in (("first", 2), ("second", 1), ("third", 1)):
        told = sorted((one[name], one["step"]) for one in found if name in one)
        assert [value for value, _ in told] == sorted([step / 2 for step in range(5000)] * times)
