"""``--host``: a command there is as it is here, in its words, bytes, codes and keys; and what a line can do to it."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from mpstui.cli import far, hosts, screen, watching
from mpstui.cli.far import take_hosts
from mpstui.cli.main import main
from mpstui.core.hosts.line import HostError, Line
from mpstui.core.model.errors import UsageError
from mpstui.core.model.home import Home, resolve_home
from mpstui.wire import storage
from mpstui.wire.moves import Move
from tests.cli.programs import mpstui, write_settings
from tests.core.runs.build import RunBuilder, make_home
from tests.ssh_lab import SshLab
from tests.terminal import Terminal
from tests.waiting import wait_until

COMMAND = [sys.executable, "-m", "mpstui"]


@pytest.fixture
def elsewhere(tmp_path: Path) -> str:
    """A host that is this machine with another home, over a pipe in place of ssh; it has one run that has ended."""
    (tmp_path / "there").mkdir()
    home = make_home(tmp_path / "there")
    run = RunBuilder(home, "far away").status("done").exit().output("").run
    run.attempt(1).output.write_bytes(b"bytes \xff\x00\r\nline\n" * 40_000)
    return f"local:{home.state}"


@pytest.mark.parametrize(
    ("words", "hosts", "rest"),
    [
        ("ps --host a --all --host=b", ["a", "b"], "ps --all"),
        ("--host a tag RUN -x", ["a"], "tag RUN -x"),
        ("tag RUN -x --host a", ["a"], "tag RUN -x"),
        ("run --host a -- prog --host b", ["a"], "run -- prog --host b"),
        ("ps", [], "ps"),
    ],
)
def test_host_may_come_before_or_after_the_command(words: str, hosts: list[str], rest: str) -> None:
    assert take_hosts(words.split()) == (hosts, rest.split())


def test_a_host_without_a_name_is_wrong() -> None:
    with pytest.raises(UsageError, match="needs the name"):
        take_hosts(["ps", "--host"])


def test_words_of_the_program_that_run_starts_are_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def run_there(hosts: object, words: object, args: object) -> int:
        asked.append((hosts, words))
        return 0

    monkeypatch.setattr(far, "run_there", run_there)
    assert main(["run", "--name", "n", "--host", "a", "python", "x.py", "--host", "b"]) == 0
    assert main(["--host", "a", "run", "prog", "--host=b"]) == 0
    assert asked == [
        (["a"], ["run", "--name", "n", "python", "x.py", "--host", "b"]),
        (["a"], ["run", "prog", "--host=b"]),
    ]


def test_output_is_the_same_bytes_and_the_code_the_same_code(elsewhere: str) -> None:
    done = subprocess.run([*COMMAND, "logs", "far", "--host", elsewhere], capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, b"bytes \xff\x00\r\nline\n" * 40_000)
    wrong = mpstui("logs", "nobody", "--host", elsewhere)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("mpstui: there is no run 'nobody'\nhint: ")


def test_a_reader_that_goes_away_ends_it_quietly(elsewhere: str) -> None:
    program = [*COMMAND, "logs", "far", "--host", elsewhere]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.read(100)
        process.stdout.close()
        assert process.wait(60) == 0
        assert process.stderr.read() == b""


def test_runs_of_several_hosts_are_one_list(elsewhere: str, capfd: pytest.CaptureFixture[str]) -> None:
    RunBuilder(resolve_home(os.environ), "near")
    assert main(["ps", "--host", "local", "--host", elsewhere, "--json"]) == 0
    rows = json.loads(capfd.readouterr().out)
    assert sorted((row["host"], row["name"]) for row in rows) == [("local", "near"), (elsewhere, "far away")]
    assert main(["--host", elsewhere, "--host", "-no", "ps"]) == 2
    assert main(["--host", elsewhere, "--host", "nobody.invalid", "ps", "--filter", "far"]) == 255
    told = capfd.readouterr()
    assert "nobody.invalid: " in told.err
    assert [line.split()[0] for line in told.out.splitlines()] == ["HOST", elsewhere]


def test_of_machines_that_share_a_home_one_tells_a_run(capfd: pytest.CaptureFixture[str]) -> None:
    here = resolve_home(os.environ)
    RunBuilder(here, "shared").status("ended").launch().exit(code=0)
    assert main(["ps", "--host", "local", "--host", f"local:{here.state}", "--json"]) == 0
    assert [row["host"] for row in json.loads(capfd.readouterr().out)] == ["local"]


def test_a_run_that_was_moved_is_one_row_where_it_goes_on(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    here, there = resolve_home(os.environ), make_home(tmp_path / "there")
    host, gone = f"local:{there.state}", RunBuilder(here, "carried").status("done").exit(signal=15).run
    RunBuilder(there, "carried")
    storage.write_json(gone.moved, Move("t", host, 1.7e9, 1))
    assert main(["ps", "--host", "local", "--host", host, "--json"]) == 0
    assert [(row["host"], row["moved_to"]) for row in json.loads(capfd.readouterr().out)] == [(host, None)]
    assert main(["ps"]) == 0
    assert f"moved to {host}" in capfd.readouterr().out
    gone.moved.rename(there.runs / gone.run / gone.moved.name)
    storage.write_json(there.runs / gone.run / gone.moved.name, Move("t", platform.node(), 1.7e9, 1))
    assert main(["ps", "--host", "local", "--host", host, "--json"]) == 0
    assert [row["host"] for row in json.loads(capfd.readouterr().out)] == ["local"]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["show", "x", "--host", "a", "--host", "b"], "one host at a time"),
        (["demo", "--host", "a"], "this machine alone"),
        (["show", "x", "--host", "two words"], "no host is called"),
    ],
)
def test_what_makes_no_sense_is_told(words: list[str], named: str) -> None:
    done = mpstui(*words)
    assert done.returncode == 2
    assert named in done.stderr


def test_a_terminal_here_is_one_there(elsewhere: str) -> None:
    with Terminal([*COMMAND, "remove", "far", "--host", elsewhere], columns=90) as asking:
        asking.wait_text("[y/N]")
        asking.press("y", "enter")
        asking.wait_text("removed 1 run")
        assert asking.wait_exit() == 0


def test_a_log_of_another_machine_is_watched(elsewhere: str) -> None:
    log = Path(elsewhere.partition(":")[2]) / "theirs.log"
    log.write_text("epoch 1 loss 0.5\nlast words\n")
    with Terminal([*COMMAND, "watch", str(log), "--host", elsewhere], columns=110) as screen:
        screen.wait_text("last words")
        screen.press("q")
        assert screen.wait_exit() == 0
    assert main(["watch", "--where", "none.log"]) == 2


def waiting(host: str, run: str, *before: str) -> Iterator[tuple[subprocess.Popen[bytes], psutil.Process]]:
    process = subprocess.Popen([*before, *COMMAND, "logs", "-f", run, "--host", host], bufsize=0, stdout=-1, stderr=-1)
    try:
        assert process.stdout
        assert process.stdout.read(4) == b"said"
        yield process, psutil.Process(process.pid)
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def running(elsewhere: str) -> Iterator[str]:
    """A run there that lives, as far as locks tell; its log says "said"."""
    folder = Path(elsewhere.partition(":")[2])
    run = RunBuilder(Home(folder, folder), "alive").launch().output("said\n").hold()
    yield run.run.run
    run.release()


def wait_for_end(*processes: psutil.Process) -> None:
    def is_gone(process: psutil.Process) -> bool:
        try:
            return bool(process.status() == psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return True

    wait_until(lambda: all(map(is_gone, processes)), what="the end of the far processes")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGKILL, -9)]
)
def test_whoever_ends_it_here_ends_it_there(elsewhere: str, running: str, number: int, code: int) -> None:
    for process, seen in waiting(elsewhere, running):
        below = seen.children(recursive=True)
        assert len(below) == 2
        process.send_signal(number)
        assert process.wait(60) == code
        wait_for_end(*below)


def test_with_nohup_it_goes_on_without_its_terminal(elsewhere: str, running: str) -> None:
    log = next(Path(elsewhere.partition(":")[2]).glob(f"runs/{running}/attempts/1/output.log"))
    for process, _ in waiting(elsewhere, running, "nohup"):
        process.send_signal(signal.SIGHUP)
        with log.open("a") as file:
            file.write("and goes on\n")
        assert process.stdout
        assert process.stdout.readline() + process.stdout.readline() == b"\nand goes on\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 143


def carries(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):  # a zombie has no command line
        return "relay" in process.cmdline()
    return False


def wait_for_line(near: psutil.Process) -> None:
    wait_until(lambda: len(near.children(recursive=True)) == 2, what="a line")


def test_what_follows_goes_on_where_it_was_cut(elsewhere: str, tmp_path: Path) -> None:
    """Its far end is killed, with the output in the middle of a character."""
    folder = Path(elsewhere.partition(":")[2])
    run = RunBuilder(Home(folder, folder), "alive").launch().output("said\n").hold()
    output = run.run.attempt(1).output
    for process, seen in waiting(elsewhere, run.run.run):
        for text, place in (("\n1 €".encode()[:-1], 0), (b"x\n" * 5000, 1)):
            ends = seen.children(recursive=True)
            with output.open("ab") as file:
                file.write(text)
            ends[place].kill()  # what carries it there, then the command itself
            wait_for_end(*ends)
            wait_for_line(seen)
        waits = subprocess.Popen([*COMMAND, "wait", "alive", "--host", elsewhere], stdout=-1, stderr=-1)
        follows = subprocess.Popen(
            [*COMMAND, "follow", "alive", "--log", "--json", "--host", elsewhere], stdout=-1, bufsize=0, stderr=-1
        )
        assert follows.stdout is not None
        told = [json.loads(follows.stdout.readline()) for _ in range(3)]
        page = tmp_path / "live.html"
        pages = [*COMMAND, "report", "alive", "--follow", "--every", "1", "-o", str(page), "--host", elsewhere]
        reports = subprocess.Popen(pages, stdout=-1, stderr=-1)
        wait_for_line(psutil.Process(waits.pid))
        wait_until(page.exists, what="the first page")
        assert 'name="reload"' in page.read_text()
        for other in (waits, reports, follows):
            psutil.Process(other.pid).children()[0].terminate()  # as a machine does that shuts down
        run.release().exit(code=0).status("ended")
        rest, said = process.communicate(timeout=60)
        assert (b"said" + rest).split(b"\n") == output.read_bytes().split(b"\n")
        assert process.returncode == 0
        assert [line.count(b" since ") for line in said.splitlines()] == [1, 1]
        told += [json.loads(line) for line in follows.communicate(timeout=60)[0].splitlines()]
        lines = [one["text"] for one in told if one["kind"] == "log"]
        assert lines == output.read_bytes().decode("utf-8", "replace").removesuffix("\n").split("\n")
        assert [one["state"] for one in told if one["kind"] == "state"][-1] == "finished"
        ended, said = waits.communicate(timeout=60)
        assert ended.split()[1:] == [b"finished", b"(exit", b"code", b"0)"]
        assert (waits.returncode, said.count(b"\n")) == (0, 1)
        assert reports.communicate(timeout=60)[0] == f"{page}\n".encode()
        assert 'name="reload"' not in page.read_text()


def test_what_acts_is_asked_again_and_done_once(
    elsewhere: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its line is cut when all is done there and nothing of that was heard here."""
    home, me = Path(elsewhere.partition(":")[2]), psutil.Process()
    cut: list[bytes] = []

    def cut_first(kind: bytes, data: bytes) -> None:
        cut.append(data)
        if len(cut) == 1:
            for far_end in filter(carries, me.children()):  # it may have ended by now
                far_end.kill()
            raise HostError(elsewhere, "cut", "connection lost", "runs there continue")

    monkeypatch.setattr(far, "_show", cut_first)
    assert main(["run", "--host", elsewhere, "--name", "once", "--", "/bin/sleep", "60"]) == 0
    (run,) = home.glob("runs/*-once")
    assert {line.strip().decode() for line in cut} == {run.name}
    assert "asked again, and carried out once" in capfd.readouterr().err
    cut.clear()
    assert main(["stop", run.name, "--host", elsewhere]) == 0
    assert len([one for one in (run / "requests").iterdir() if not one.name.endswith(".ack.json")]) == 1


def test_a_command_that_never_began_or_whose_time_is_up_is_not_asked_again(
    elsewhere: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["wait", "x", "--host", "nobody.invalid"]) == 255
    capfd.readouterr()

    def cut(kind: bytes, data: bytes) -> None:
        raise HostError(elsewhere, "cut", "connection lost", "runs there continue")

    monkeypatch.setattr(far, "_show", cut)
    monkeypatch.setattr(far, "ACT_SECONDS", 0.0)
    assert main(["launch", "nothing", "--host", elsewhere]) == 255
    assert "it is not known whether it was carried out" in capfd.readouterr().err


def test_a_bare_machine_runs_all_of_it(ssh_lab: SshLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over ssh, with a Python that has no packages: what is sent is all there is."""
    home = ssh_lab.host("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home / "venv")], check=True, timeout=60)
    settings = '[hosts.bare]\npython = "~/venv/bin/python"\n'
    write_settings(settings)
    monkeypatch.setenv("MPSTUI_SSH", ssh_lab.environ["MPSTUI_SSH"])
    monkeypatch.setenv("WANDB_API_KEY", "s3cret-of-this-machine")
    script = "import sys, os; print('boot', '_mpstui_boot' in sys.modules, os.environ.get('WANDB_API_KEY'), flush=True)"
    (home / "train.py").write_text(f"{script}\nimport time; time.sleep(60)\n")

    def there(*words: str, code: int = 0) -> str:
        done = mpstui(*words, "--host", "bare")
        assert done.returncode == code, done.stderr
        return done.stdout

    run = there("run", "--host", "bare", "--name", 'it\'s "far"', "--", str(home / "venv/bin/python"), "train.py")[:-1]
    folder = home / ".local/state/mpstui/runs" / run
    wait_until(lambda: (folder / "attempts/1/output.log").read_text() == "boot True None\n", what="the log")
    (row,) = json.loads(there("ps", "--json"))
    assert (row["host"], row["run"], row["name"], row["state"]) == ("bare", run, 'it\'s "far"', "running")
    there("restart", run)
    wait_until((folder / "attempts/2/output.log").exists, what="the second attempt")
    there("stop", run)
    wait_until(lambda: not ssh_lab.sessions(), what="the end of all lines")


def test_without_any_machine_it_is_said_how_to_begin_and_one_can_be_named(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert main(["hosts"]) == 0
    assert "mpstui hosts NAME" in capfd.readouterr().out
    assert main(["hosts", "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == []
    assert main(["hosts", "nobody.invalid"]) == 255
    assert capfd.readouterr().out.startswith("nobody.invalid")


def test_hosts_are_checked(elsewhere: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    write_settings('[hosts]\nssh = ["false"]\n[hosts.mac]\n')
    assert main(["hosts", "--json"]) == 255
    (mac,) = json.loads(capfd.readouterr().out)
    assert (mac["host"], mac["ok"], mac["error"]["kind"], mac["python"]) == ("mac", False, "shell", None)
    process = subprocess.Popen(["true"], stdin=-1, stdout=-1, stderr=-1)
    answer = far.Answer("mac", b'{"ok": true, "checks": []}', b"", 0, Line("mac", process), 0.25)
    answer.line.facts = {"python": {"version": "3.12.1", "executable": "/x/python"}}
    answer.line.clock_ahead = -90.0
    monkeypatch.setattr(hosts, "ask_all", lambda names, words: [answer])
    assert main(["hosts"]) == 0
    told = capfd.readouterr().out
    assert "Python 3.12.1, /x/python" in told
    assert "its clock is 1m 30s behind" in told


def test_what_is_written_is_written_here(
    elsewhere: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    folder = Path(elsewhere.partition(":")[2])
    RunBuilder(Home(folder, folder), "with points").status("done").exit().points({"step": 1, "loss": 0.5})
    for command in (["report", "far"], ["export", "with-points", "--to", "csv", "-o", "mine.csv"]):
        assert main([*command, "--host", elsewhere]) == 0, capfd.readouterr()
    assert capfd.readouterr().out.split("\n") == ["far-away.html", "mine.csv", ""]
    assert "<html" in Path("far-away.html").read_text()[:200]
    assert Path("mine.csv").read_text().startswith("step,")
    assert main(["export", "with-points", "--to", "svg", "--host", elsewhere]) == 0
    assert capfd.readouterr().out == "with-points.svg\n"
    assert "with points · loss" in Path("with-points.svg").read_text()
    assert main(["export", "with-points", "--to", "wandb", "--host", elsewhere]) == 0
    (folder_here,) = Path("wandb").iterdir()
    assert capfd.readouterr().out == f"{folder_here}\n"
    assert list(folder_here.glob("run-*.wandb"))
    RunBuilder(Home(folder, folder), "other points").status("done").exit().points({"step": 1, "loss": 0.25})
    for to, written in (("csv", "*.csv"), ("tensorboard", "*/events*")):
        assert main(["export", "with-points", "other-points", "--to", to, "-o", "both", "--host", elsewhere]) == 0
        assert sorted(map(str, Path("both").glob(written))) == sorted(capfd.readouterr().out.split())
        assert len([*Path("both").glob(written)]) == 2
    assert main(["export", "with-points", "--to", "svg", "--metric", "none", "--host", elsewhere]) == 2
    RunBuilder(Home(folder, folder), "more points").status("done").exit().points({"step": 1, "acc": 0.5})
    both = ["with-points", "more-points", "--metric", "acc"]
    assert main(["export", *both, "--to", "svg", "-o", "drawn", "--host", elsewhere]) == 1
    assert [one.name for one in Path("drawn").iterdir()] == ["more-points.svg"]
    before = {*Path().iterdir()}
    capfd.readouterr()
    assert main(["export", "with-points", "--to", "csv", "-o", "-", "--host", elsewhere]) == 0
    assert capfd.readouterr().out.startswith("step,")
    assert main(["export", "with-points", "--to", "wandb", "-o", "-", "--host", elsewhere]) == 2
    assert {*Path().iterdir()} == before


def test_the_screen_opens_on_the_hosts_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[list[str], str | None]] = []

    def show_screen(home: Home, arguments: argparse.Namespace, opening: str | None) -> int:
        shown.append((arguments.hosts, opening))
        return 0

    monkeypatch.setattr(screen, "show_screen", show_screen)
    monkeypatch.setattr(screen, "require_terminal", lambda: None)
    assert main([]) == 0
    write_settings('[hosts]\nshow = ["mac"]\n')
    RunBuilder(resolve_home(os.environ), "near")
    for words in ([], ["--host", "gpu1"], ["near"]):
        assert main(words) == 0
    assert [hosts for hosts, _ in shown] == [[], ["local", "mac"], ["gpu1"], []]


@pytest.mark.parametrize(("line", "sentence"), [(b"no list", "cannot be read"), (None, "has ended")])
def test_a_watched_machine_that_tells_no_list_is_named(
    line: bytes | None, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stream(host: str, words: list[str], told: Callable[[bytes], None]) -> None:
        if line is not None:
            told(line)

    monkeypatch.setattr(far, "stream", stream)
    monkeypatch.setattr(watching, "FIRST_SECONDS", 60.0)
    arguments = argparse.Namespace(hosts=["gpu1"], json=False, all=False, filter=None, every=1.0)
    (note,) = watching._Hosts(arguments).look()[2]
    assert note.startswith("gpu1: ")
    assert sentence in note
