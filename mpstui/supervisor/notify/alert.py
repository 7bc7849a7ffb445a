"""One alert: its text, and its delivery to the user's command and webhook, in limited time and on record."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import select
import signal
import subprocess
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from ...wire import heartbeat, labels, liveness, storage, trust
from ...wire.records import ALERT_EVENTS, ALERT_WHEN, ExitRecord, Spec, Status, is_safe_address
from ...wire.rundir import RunDir
from ...wire.secrets import masked_text
from ..family import adopt_orphans

HOOK_SECONDS = 60.0
WEBHOOK_SECONDS = 10.0
MOST_OUTPUT_BYTES = 64 * 1024
"""How much of a hook's output to keep: it must not fill a training's disk."""
LARGEST_LOG_BYTES = 1 << 20
TITLES = {"crash": "crashed: ", "finish": "finished: "}
"""Goes before the text that says how. The text of a stall has its own first word: hung, paused."""
TEST = "test"


class AlertSettings(NamedTuple):
    """The part of ``[alerts]`` that is handled here; the bell is the open screen's business."""

    on: Sequence[str] = ALERT_EVENTS
    when: str = "always"
    hook: Sequence[str] = ()
    webhook: str = ""


class Outcome(NamedTuple):
    """The result of one delivery."""

    ok: bool
    text: str


def main(arguments: Sequence[str]) -> int:
    """Deliver one alert, and leave no process behind that a hook started; returns a code as :func:`tell` does."""
    adopt_orphans()  # so that what the hook leaves behind can be found
    code = tell(arguments)
    for left in liveness.descendants(liveness.system_process_table().snapshot(), [os.getpid()]):
        with contextlib.suppress(OSError):  # a child of the hook, in a session of its own
            os.kill(left.pid, signal.SIGKILL)
    return code


def tell(arguments: Sequence[str]) -> int:
    """Deliver one alert: 0 if everything arrived, 1 if something did not (see ``alerts.log``), 2 for wrong usage."""
    if len(arguments) != 6 or not arguments[2].isdigit():
        return 2
    event, folder, attempt, text, settings, screen_lock = arguments
    run = RunDir(Path(folder))
    log = functools.partial(_append, run.alerts_log)
    try:
        wanted = read_settings(Path(settings))
    except (OSError, ValueError, RecursionError) as error:
        log(f"{event}: no alert was sent: {settings} cannot be read: {error}")
        return 1
    if wanted is None:
        return 0
    unseen = wanted.when == "always" or (wanted.when == "no_screen" and not liveness.is_shared(Path(screen_lock)))
    if event != TEST and not (event in wanted.on and unseen):
        return 0
    return 0 if deliver(wanted, compose(event, run, int(attempt), text), log) else 1


def read_settings(path: Path) -> AlertSettings | None:
    """Return the user's settings; None if there is no file.

    Raises:
        OSError, ValueError: the file cannot be read, is not TOML, or has invalid contents.
    """
    if why := trust.distrust_of_any(path.parent, path):
        raise PermissionError(f"not obeyed, because {why}")
    try:
        table = tomllib.loads(storage.read_text(path, errors="strict")).get("alerts", {})
    except FileNotFoundError:
        return None
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(table, dict):
        raise ValueError("`alerts` must be a table")  # noqa: TRY004  one kind of mistake, one exception
    found = AlertSettings(**{name: table[name] for name in AlertSettings._fields if name in table})
    if not (
        _are_words(found.on) and _are_words(found.hook) and found.when in ALERT_WHEN and isinstance(found.webhook, str)
    ):
        raise ValueError("[alerts] has a value of a wrong type; `mpstui alerts` names it")
    return found


def compose(event: str, run: RunDir, attempt: int, text: str) -> dict[str, Any]:
    """Build the alert; fields that cannot be read are null. ``text`` is the whole sentence, the others are details."""
    spec = storage.read_or_none(Spec, run.spec)
    exit_record = storage.read_or_none(ExitRecord, run.attempt(attempt).exit)
    status, beat = storage.read_or_none(Status, run.status), heartbeat.read(run.attempt(attempt).heartbeat())
    name = "mpstui" if event == TEST else labels.name_of(run, spec)
    more = status.message if status and event == "crash" else None
    parts = [text, f"step {beat.step:,}" if beat and beat.step is not None else "", more or ""]
    return {
        "event": event,
        "text": f"{name} {TITLES.get(event, '')}" + "; ".join(part for part in parts if part),
        "run": TEST if event == TEST else run.run,
        "name": name,
        "attempt": attempt,
        "cause": exit_record.cause if exit_record else None,
        "code": exit_record.code if exit_record else None,
        "signal": exit_record.signal if exit_record else None,
        "step": beat.step if beat else None,
        "epoch": heartbeat.epoch_told(beat.epoch, beat.epochs, beat.first_epoch) if beat else None,
        "loss": beat.loss if beat else None,
        "host": os.uname().nodename,
        "dir": str(run.path),
        "time": time.time(),
    }


def deliver(
    wanted: AlertSettings, message: Mapping[str, Any], log: Callable[[str], None], hook_seconds: float = HOOK_SECONDS
) -> bool:
    """Start the hook, post, then wait for the hook, so that neither delays the other. True if both succeeded."""
    body = json.dumps(message).encode()  # ASCII: a name may hold characters that no encoding can represent
    hook = _start_hook(wanted.hook, message, log) if wanted.hook else None
    deadline = time.monotonic() + hook_seconds
    if hook is not None and hook.stdin is not None:
        with contextlib.suppress(OSError):  # a hook need not read
            os.set_blocking(hook.stdin.fileno(), False)
            os.write(hook.stdin.fileno(), body)
            hook.stdin.close()
    arrived = not wanted.hook or hook is not None
    if wanted.webhook:
        posted = post(wanted.webhook, body)
        log(f"{message['event']}: webhook: {posted.text}")
        arrived &= posted.ok
    if hook is not None:
        ended = _finish_hook(hook, deadline)
        log(f"{message['event']}: hook: {ended.text}")
        arrived &= ended.ok
    return arrived


def post(url: str, body: bytes) -> Outcome:
    """POST JSON and return the result, without the address: it may hold a token. Redirects are not followed."""
    if not is_safe_address(url):
        return Outcome(False, "not sent: the address must begin with https://")
    here = [urllib.request.ProxyHandler({})] if url.startswith("http:") else []  # a proxy cannot reach this machine
    opener = urllib.request.build_opener(_NoRedirect, *here)
    before = signal.signal(signal.SIGALRM, _too_late)
    signal.setitimer(signal.ITIMER_REAL, WEBHOOK_SECONDS)  # urllib's own limit applies to each packet, not to the whole
    try:
        request = urllib.request.Request(url, body, {"Content-Type": "application/json", "User-Agent": "mpstui"})
        with opener.open(request, timeout=WEBHOOK_SECONDS) as response:
            return Outcome(200 <= response.status < 300, f"HTTP {response.status}")
    except urllib.error.HTTPError as error:
        return Outcome(False, f"HTTP {error.code}")
    except (OSError, ValueError) as error:
        return Outcome(False, f"failed: {str(error).replace(url, 'the address')}")
    except Exception as error:  # noqa: BLE001  http.client has its own exceptions; every alert must end in a log line
        return Outcome(False, f"failed: {type(error).__name__}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _are_words(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(word, str) for word in value)


def _start_hook(
    words: Sequence[str], message: Mapping[str, Any], log: Callable[[str], None]
) -> subprocess.Popen[bytes] | None:
    """Start the user's command, without a shell, with ``{text}`` and the like filled in.

    The run's own variables are not passed on: the supervisor recognises a training's processes by them.
    """
    filled = [Path(words[0]).expanduser().as_posix()]
    for word in words[1:]:
        for name in ("event", "text", "run", "name", "dir"):
            word = word.replace("{" + name + "}", str(message[name]))
        filled.append(word)
    # A supervisor started from inside a training has that training's variables.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MPSTUI_RUN_")}
    told = {f"MPSTUI_ALERT_{name.upper()}": str(value) for name, value in message.items() if value is not None}
    try:
        return subprocess.Popen(
            filled,
            cwd=message["dir"],
            env={**inherited, **told},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        log(f"{message['event']}: hook: could not be started: {error}")
        return None


def _finish_hook(hook: subprocess.Popen[bytes], deadline: float) -> Outcome:
    """Wait for the hook until its time is up, keep some of its output, then end it and everything it started."""
    kept, stream = b"", hook.stdout
    while stream is not None and (left := deadline - time.monotonic()) > 0:
        if not select.select([stream], [], [], min(left, 0.2))[0]:
            if hook.poll() is not None:
                break
            continue
        data = os.read(stream.fileno(), 65536)
        if not data:
            break
        kept = (kept + data)[:MOST_OUTPUT_BYTES]
    try:
        code: int | None = hook.wait(timeout=max(0.05, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        code = None  # it hangs
    with contextlib.suppress(OSError):  # nothing may be left of its session
        os.killpg(hook.pid, signal.SIGKILL)
    hook.wait()
    end = f"exit code {code}" if code is not None else "ended because its time was up"
    return Outcome(code == 0, f"{end}\n{kept.decode('utf-8', 'replace')}".rstrip())


def _append(path: Path, text: str) -> None:
    """Append a time-stamped line to ``alerts.log``: private, limited in size, without secrets; failures are ignored."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(descriptor).st_size < LARGEST_LOG_BYTES:
                os.write(descriptor, f"{stamp} {masked_text(text)}\n".encode("utf-8", "replace"))
        finally:
            os.close(descriptor)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect could lead the message, and the token in its address, elsewhere."""

    def redirect_request(self, *arguments: Any, **named: Any) -> None:
        """Never redirect."""


def _too_late(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"no answer within {WEBHOOK_SECONDS:.0f} s")
