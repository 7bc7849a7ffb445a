"""Somebody is told of a crash, a stall and a finish, with no screen open, and nothing about a run depends on it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from mpstui.supervisor.alerts import StallWatch
from mpstui.supervisor.machine import Clock
from mpstui.supervisor.notify import alert
from mpstui.supervisor.notify.alert import AlertSettings
from mpstui.wire import liveness
from mpstui.wire.records import AlertRule, RestartRule

from .kit import Run, wait_for

MakeRun = Callable[..., Run]
HOOK = (
    "import json, os, sys; body = json.load(sys.stdin); "
    "file = open(os.environ['MPSTUI_ALERT_DIR'] + '/told', 'a'); "
    "file.write(json.dumps([sys.argv[1], body]) + chr(10)); print('told')"
)


class Receiver(HTTPServer):
    """Keeps what is posted to it."""

    posted: list[Any]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            if self.path == "/away":
                self.send_response(302)
                self.send_header("Location", "/elsewhere")
            elif self.path == "/broken":
                self.send_response(500)
            else:
                server.posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            """Quiet."""

    server = Receiver(("127.0.0.1", 0), Handler)
    server.posted = []
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def alerting(make_run: MakeRun, code: str, settings: str, **spec: Any) -> Run:
    run = make_run(code, **spec)
    path = run.home / "settings.toml"
    path.write_text(settings)
    run.respec(alerts=AlertRule(str(path), str(run.home / "screen.lock")))
    return run


def hooked(code: str = HOOK, more: str = "") -> str:
    return f"[alerts]\nhook = {json.dumps([sys.executable, '-c', code, '{event}'])}\n{more}"


def told(run: Run) -> list[Any]:
    path = run.dir.path / "told"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def log_of(run: Run) -> str:
    return run.dir.alerts_log.read_text() if run.dir.alerts_log.exists() else ""


def test_a_crash_is_told_with_no_screen_open(make_run: MakeRun) -> None:
    run = alerting(make_run, "raise SystemExit(3)", hooked())
    run.start()
    [(event, message)] = wait_for(lambda: told(run), "the hook")
    assert event == "crash"
    assert (message["event"], message["run"], message["code"], message["attempt"]) == ("crash", run.dir.run, 3, 1)
    assert message["text"].startswith("t crashed: exit code 3")
    wait_for(lambda: "hook: exit code 0\ntold" in log_of(run), "the outcome")
    assert run.dir.alerts_log.stat().st_mode & 0o77 == 0


def test_a_finish_is_told_and_a_stop_that_was_asked_for_is_not(make_run: MakeRun) -> None:
    run = alerting(make_run, "print('done')", hooked())
    run.start()
    assert wait_for(lambda: told(run), "the hook")[0][0] == "finish"
    stopped = alerting(make_run, "import time; print('up', flush=True); time.sleep(60)", hooked())
    stopped.start()
    stopped.wait_output("up")
    assert stopped.wait_ack(stopped.ask("stop")).ok
    stopped.wait_unsupervised()
    assert not stopped.dir.alerts_log.exists()
    assert not told(stopped)


def test_a_hanging_hook_delays_neither_the_record_nor_the_restart_nor_the_end(make_run: MakeRun) -> None:
    code = "import os; open('hung', 'a').write(f'{os.getpid()} '); import time; time.sleep(600)"
    rule = RestartRule(on=["boom"], delays_seconds=[0.0])
    causes = [{"id": "boom", "codes": [3]}]
    crash = (
        "import json, os, sys; attempt = os.environ['MPSTUI_ATTEMPT']\n"
        "path = os.path.join(os.environ['MPSTUI_RUN_DIR'], 'attempts', attempt, 'heartbeat.json')\n"
        "json.dump({'schema': 1, 'time': 1, 'seq': 1, 'step': 5, 'phase': 'done'}, open(path, 'w'))\n"
        "sys.exit(3 if attempt == '1' else 0)"
    )
    run = alerting(make_run, crash, hooked(code), restart=rule, causes=causes)
    run.start()
    try:
        assert run.wait_exit(1).code == 3
        assert run.wait_exit(2).code == 0
        run.wait_unsupervised()
        assert [run.wait_exit(number).survivors for number in (1, 2)] == [[], []]
        pids = wait_for(lambda: _pids(run), "the hooks")
        assert all(os.getsid(pid) == pid for pid in pids), "they hang as before, nobody has waited for their end"
    finally:
        for pid in _pids(run):
            os.kill(pid, signal.SIGKILL)


def _pids(run: Run) -> list[int]:
    path = run.dir.path / "hung"
    return [int(word) for word in path.read_text().split()] if path.exists() else []


@pytest.mark.parametrize(("told", "epoch"), [({"first_epoch": 0, "epochs": 3}, 3), ({"epochs": 3}, 2), ({}, 2)])
def test_an_alert_tells_the_epoch_as_the_screen_does(make_run: MakeRun, told: dict[str, int], epoch: int) -> None:
    """The last of three is the third, in a program that counts from 0."""
    run = alerting(make_run, "raise SystemExit(3)", "")
    beat = {"schema": 1, "time": 1, "seq": 1, "epoch": 2, **told}
    run.dir.attempt(1).path.mkdir(parents=True)
    run.dir.attempt(1).heartbeat().write_text(json.dumps(beat))
    assert alert.compose("crash", run.dir, 1, "exit code 3")["epoch"] == epoch


def test_only_when_no_screen_is_open(make_run: MakeRun) -> None:
    run = alerting(make_run, "raise SystemExit(1)", hooked(more='when = "no_screen"\n'))
    rule = run.spec.alerts
    assert rule is not None
    words = ["crash", str(run.dir.path), "1", "exit code 1", rule.settings, rule.screen_lock]
    first, second = liveness.share(Path(rule.screen_lock)), liveness.share(Path(rule.screen_lock))
    assert first is not None
    assert second is not None
    liveness.release(first)
    assert alert.tell(words) == 0
    assert not told(run)
    liveness.release(second)
    assert alert.tell(words) == 0
    assert len(told(run)) == 1


def test_what_is_not_wanted_is_not_told(make_run: MakeRun) -> None:
    run = alerting(make_run, "", hooked(more='on = ["stall"]\n'))
    words = ["crash", str(run.dir.path), "1", "x", str(run.home / "settings.toml"), str(run.home / "screen.lock")]
    alert.tell(words)
    assert not told(run)
    (run.home / "settings.toml").write_text("[alerts]\nhook = 3\n")
    alert.tell(words)
    assert "no alert was sent" in log_of(run)


def test_the_webhook_gets_the_message_and_the_log_never_its_address(make_run: MakeRun, receiver: Receiver) -> None:
    address = f"http://127.0.0.1:{receiver.server_port}/hook?token=s3cret"
    run = alerting(make_run, "raise SystemExit(4)", f'[alerts]\nwebhook = "{address}"\n')
    run.start()
    wait_for(lambda: "webhook: HTTP 204" in log_of(run), "the webhook")
    assert receiver.posted[0]["code"] == 4
    kept = [path for path in run.dir.path.rglob("*") if path.is_file() and b"s3cret" in path.read_bytes()]
    assert not kept


def test_a_webhook_that_cannot_be_reached_or_leads_away_is_said(receiver: Receiver) -> None:
    here = f"http://127.0.0.1:{receiver.server_port}"
    assert alert.post(f"{here}/away", b"{}") == (False, "HTTP 302")
    assert alert.post("http://127.0.0.1:1/x?token=s3cret", b"{}").text.startswith("failed: ")
    assert "https" in alert.post("http://example.com/", b"{}").text


@pytest.mark.parametrize("url", ["https://[::1", "https://", "https://a b/", "https://x:99999999/", "https://\ud800/"])
def test_an_address_that_is_none_is_a_line_of_the_log(url: str) -> None:
    said: list[str] = []
    message = {"event": "test", "name": "a name that \ud800 no encoding takes"}
    assert not alert.deliver(alert.AlertSettings(webhook=url), message, said.append)
    assert len(said) == 1
    assert said[0].startswith("test: webhook: failed")


@pytest.mark.parametrize("path", ["/away", "/broken"])
def test_an_answer_that_is_no_success_is_a_failure(receiver: Receiver, path: str) -> None:
    wanted = alert.AlertSettings(webhook=f"http://127.0.0.1:{receiver.server_port}{path}")
    assert not alert.deliver(wanted, {"event": "test"}, lambda text: None)


def test_a_message_to_this_machine_passes_no_proxy(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1/")
    monkeypatch.delenv("no_proxy", raising=False)
    assert alert.post(f"http://127.0.0.1:{receiver.server_port}/x?token=s3cret", b"{}") == (True, "HTTP 204")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems do not tell orphans")
def test_what_a_hook_starts_in_a_session_of_its_own_ends_with_it(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    daemon = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(99)"
    code = (
        "import os, subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-c', {daemon!r}], start_new_session=True)\n"
        f"while not os.path.exists({str(pid)!r}) or not open({str(pid)!r}).read(): time.sleep(0.01)\n"
    )
    settings = tmp_path / "settings.toml"
    settings.write_text(f"[alerts]\nhook = {json.dumps([sys.executable, '-c', code])}\n")
    notifier = Path(alert.__file__).with_name("__main__.py")
    words = ["test", str(tmp_path), "1", "a test", str(settings), str(tmp_path / "lock")]
    subprocess.run([sys.executable, "-I", "-S", str(notifier), *words], check=True, timeout=60)
    process = liveness.LinuxProcessTable().find(int(pid.read_text()))
    assert process is None or not process.alive


def test_a_hook_that_never_ends_is_ended_with_all_it_started(tmp_path: Path) -> None:
    said: list[str] = []
    message = {"event": "test", "text": "", "run": "", "name": "", "dir": str(tmp_path)}
    wishes = AlertSettings(hook=["sh", "-c", "sleep 600 & echo $!; sleep 600"])
    alert.deliver(wishes, message, said.append, hook_seconds=1.0)
    assert "its time was up" in said[0]
    grandchild = int(said[0].split()[-1])
    wait_for(lambda: not _lives(grandchild), "the end of the hook's child")


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_stall_is_told_once_and_again_after_a_new_beat(make_run: MakeRun) -> None:
    run, now = make_run(""), [100.0]
    watch = StallWatch(run.dir, run.spec, Clock(monotonic=lambda: now[0]))

    def look(after: float) -> str | None:
        now[0] += after
        return watch.poll(1, None)

    run.dir.attempt(1).path.mkdir(parents=True)
    run.beat(expect_next_in=40, phase="train")
    assert look(0) is None
    assert look(110) is None
    assert "promised within 40 s" in (look(20) or "")
    assert look(500) is None
    run.beat(expect_next_in=40, phase="train")
    assert look(5) is None
    run.dir.attempt(1).output.write_text("still printing\n")
    assert look(130) is None
    assert look(130)


def test_a_trainer_that_somebody_stopped_is_told_as_paused(make_run: MakeRun) -> None:
    main = Path(__file__).parent / "quick_stall.py"
    run = alerting(make_run, "import time; print('up', flush=True); time.sleep(60)", hooked())
    run.start(main)
    run.wait_output("up")
    assert run.status.trainer
    os.kill(run.status.trainer[0], signal.SIGSTOP)
    run.beat(expect_next_in=0.2, phase="train")
    [(_, message)] = wait_for(lambda: told(run), "the hook")
    assert message["text"].startswith("t paused: stopped by a signal that mpstui did not send; ")
    run.wait_ack(run.ask("kill"))


def test_a_stalled_trainer_is_told_by_the_supervisor(make_run: MakeRun) -> None:
    main = Path(__file__).parent / "quick_stall.py"
    run = alerting(make_run, "import time; print('up', flush=True); time.sleep(60)", hooked())
    run.dir.attempt(1).path.mkdir(parents=True)
    run.beat(expect_next_in=0.2, phase="train")
    run.dir.attempt(1).heartbeat().rename(run.dir.path / "later")
    run.start(main)
    run.wait_output("up")
    (run.dir.path / "later").rename(run.dir.attempt(1).heartbeat())
    [(event, message)] = wait_for(lambda: told(run), "the hook")
    assert event == "stall"
    assert message["text"].startswith("t hung: no sign of life for ")
    assert any("promised within" in event["text"] for event in run.events("note"))
    run.wait_ack(run.ask("kill"))
