"""A line to a far process: its streams, how it begins, and why it ended or never began."""

from __future__ import annotations

import contextlib
import os
import re
import select
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import IO, Any, NamedTuple

from ...wire import storage
from ..formats.console import strip_controls
from ..model.errors import OperationError
from .bundle import Bundle

MOST_NOISE = 1 << 20
SSH_FAILED = 255


class HostError(OperationError):
    """A machine cannot be used; ``kind`` tells programs why.

    Args:
        kind: name (unknown), unreachable, login, key_changed, key_unknown, config (of ssh), ssh (not there), shell,
            python (none that is new enough), folder, room (nowhere to put us), transfer, silent, noise, cut, frozen,
            failed.
    """

    exit_code = SSH_FAILED
    """The same as ssh's, so that a script can tell it from a command that failed over there."""

    def __init__(self, host: str, kind: str, sentence: str, hint: str = "") -> None:
        super().__init__(f"{host}: {sentence}", hint, field="host")
        self.host, self.kind = host, kind
        self.why = sentence
        """The sentence without the machine's name."""


class _Told(NamedTuple):
    """One of the messages of ssh, which has no finer exit codes, and speaks only English."""

    pattern: re.Pattern[str]
    kind: str
    sentence: str
    hint: str = ""


_TELLS = tuple(
    _Told(re.compile(pattern), *rest)
    for pattern, *rest in (
        (
            r"REMOTE HOST IDENTIFICATION HAS CHANGED",
            *("key_changed", "its host key is not the one that is known for it{place}; nothing was sent there"),
            "if it was reinstalled, `ssh-keygen -R` removes the old key; else the connection may be intercepted",
        ),
        (
            r"Host key verification failed|No \S+ host key is known",
            *("key_unknown", "its host key is not known yet"),
            "`ssh {host}` once, and compare the key it shows with that of the machine",
        ),
        (
            r"Permission denied \(|Too many authentication failures|No more authentication methods",
            *("login", "it accepts no key that ssh has, and passwords are never asked for"),
            "`ssh-copy-id {host}` puts your key there, `ssh-add` unlocks one that has a passphrase",
        ),
        (
            r"Could not resolve hostname|Name or service not known|nodename nor servname",
            *("name", "there is no machine of this name"),
            "use a name from ~/.ssh/config or the network, or give its address in [hosts.{host}] of settings.toml",
        ),
        (
            r"Connection refused|No route to host|[Tt]imed out|Network is unreachable|UNKNOWN port|Connection reset",
            *("unreachable", "it cannot be reached: {last}"),
            "`ssh -v {host}` tells more",
        ),
        (
            r"[Bb]ad configuration option|Bad owner or permissions|no argument after|usage: ssh|Can't open user config",
            *("config", "ssh rejects its configuration: {last}"),
        ),
    )
)


def told_by_ssh(host: str, text: str) -> HostError | None:
    """What ssh's standard error says about a line it could not open; None if nothing known is in it."""
    words = {"host": host, "last": _last_line(text), "place": ""}
    if place := re.search(r"Offending \S+ key in (\S+)", text):
        words["place"] = f" ({place[1]})"
    for told in _TELLS:
        if told.pattern.search(text):
            return HostError(host, told.kind, told.sentence.format(**words), told.hint.format(**words))
    return None


def _last_line(text: str) -> str:
    lines = [line.strip() for line in strip_controls(text).splitlines() if line.strip()]
    return lines[-1][:200] if lines else "nothing was said"


class Line:
    """A running far process: bytes to it, bytes from it, and why it ended. Closing the line ends the process.

    Its user must notice when it hangs: both ends send something now and then.
    """

    def __init__(self, host: str, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.host = host
        self.facts: dict[str, Any] = {}
        """What the far program said of itself: python (version, executable, system), bundle, fresh (sent just now)."""
        self.clock_ahead = 0.0
        """Seconds by which the far clock is ahead of ours, too low by the travel time of one message."""
        self.writes: IO[bytes] = process.stdin
        """Unbuffered: a write may accept only a part of what it is given."""
        self.reads: IO[bytes] = process.stdout
        """Unbuffered: a read returns what is there, and no bytes at the end."""
        self._process = process
        self._said: deque[bytes] = deque(maxlen=32)
        self._is_heard = False
        # A shared connection that stays open keeps ssh's standard error open: do not wait for its end.
        self._listener = threading.Thread(target=self._listen, daemon=True, name=f"ssh {host}")
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stderr is not None
        with contextlib.suppress(OSError, ValueError):
            while said := os.read(self._process.stderr.fileno(), 4096):
                self._said.append(said)

    def send(self, data: bytes) -> None:
        """Send all of it.

        Raises:
            HostError: the line is cut.
        """
        view = memoryview(data)
        try:
            while view:
                view = view[self.writes.write(view) or 0 :]
        except (OSError, ValueError) as error:
            raise self.failure() from error

    def failure(self) -> HostError:
        """Why nothing is received any more, after the end of :attr:`reads` or a failed write."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(2)
        self._listener.join(0.05 if self.facts else 1.0)  # its last words come through another pipe
        text = b"".join(self._said).decode(errors="replace")
        code = self._process.returncode
        if not self.facts and code == SSH_FAILED and (known := told_by_ssh(self.host, text)):
            return known
        is_cut = code in (SSH_FAILED, None) or code < 0
        if not (self.facts or self._is_heard or is_cut):
            sentence = f"it accepts the login but starts nothing: {_last_line(text)}"
            return HostError(self.host, "shell", sentence, f"try `ssh {self.host}`")
        if is_cut:
            when = "" if self.facts else " before anything was done there"
            return HostError(self.host, "cut", f"connection lost{when}", "runs there continue")
        return HostError(self.host, "failed", f"the far program ended: {_last_line(text)}")

    def close(self, patience: float = 1.0) -> None:
        """End the far process by closing its input.

        Args:
            patience: seconds for it to end; then the line is cut from here, which ends it as well.
        """
        with contextlib.suppress(OSError):
            self.writes.close()
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(1)
            self._process.kill()
            self._process.wait()
        self.reads.close()

    def speaks_within(self, seconds: float) -> bool:
        """True if anything is received in that time, even noise or the end of the stream."""
        return bool(select.select([self.reads], [], [], seconds)[0])

    def arrive(self, marker: str, bundle: Bundle, patience: float, sending: Callable[[int], None]) -> None:
        """Wait for the far program, and send it the bundle if it has none.

        Args:
            sending: called with the number of bytes before they are sent.

        Raises:
            HostError: it could not begin.
        """
        deadline = time.monotonic() + patience
        word, fields = self._heard(marker, deadline)
        if word == "send":
            # No deadline: at 9,600 baud a megabyte takes longer than anybody's patience, and is still no failure.
            packed = bundle.packed()
            sending(len(packed))
            self.send(packed)
            word, fields = self._heard(marker, None)
        if word == "ready":
            self.facts = fields
            self.clock_ahead = fields["time"] - time.time()
            return
        raise _refusal(self.host, word, fields)

    def _heard(self, marker: str, deadline: float | None) -> tuple[str, dict[str, Any]]:
        """The next line after the marker. No byte beyond it is read, and what precedes it is noise."""
        start, noise = f"\n{marker} ".encode(), bytearray()
        while not noise.endswith(start):
            missing = next(n for n in range(1, len(start) + 1) if noise.endswith(start[: len(start) - n]))
            noise += self._read(missing, deadline, noise)
            if len(noise) > MOST_NOISE:
                raise HostError(self.host, "noise", "its start-up files print endlessly", f"try `ssh {self.host} true`")
        self._is_heard = True
        line = bytearray()
        while not line.endswith(b"\n"):
            line += self._read(1, deadline, line)
        word, _, text = line.decode(errors="replace").strip().partition(" ")
        try:
            return word, storage.load_object(text)
        except storage.UnreadableRecord:
            return word, {"detail": text}

    def _read(self, most: int, deadline: float | None, so_far: bytearray) -> bytes:
        if deadline is not None and not select.select([self.reads], [], [], max(0.0, deadline - time.monotonic()))[0]:
            said = _last_line(so_far.decode(errors="replace"))
            raise HostError(
                self.host,
                "silent",
                "no answer within the time given" + (f"; it said: {said}" if so_far.strip() else ""),
                f"a start-up file there that waits for input? try `ssh {self.host} true`",
            )
        if not (found := self.reads.read(most)):
            if so_far.strip():
                self._said.append(bytes(so_far))
            raise self.failure()
        return found


def _refusal(host: str, word: str, fields: Mapping[str, Any]) -> HostError:
    detail = strip_controls(str(fields.get("detail", ""))).strip()
    if word == "python":
        old = detail.rstrip(",")
        found = f"{old}, and mpstui needs 3.11 or newer" if old else "there is no python3"
        return HostError(
            host, "python", found, f'name one: [hosts.{host}] python = "~/venv/bin/python" in settings.toml'
        )
    what = str(fields.get("what", "failed"))
    sentences = {
        "room": (f"there is no place for mpstui there: {detail}", "free some space there, or set XDG_CACHE_HOME"),
        "folder": (f"it cannot begin in its folder: {detail}", f"`folder` in [hosts.{host}] of settings.toml"),
        "transfer": (f"mpstui did not arrive there whole: {detail}", "try again"),
    }
    sentence, hint = sentences.get(what, (f"it could not begin: {detail}", ""))
    return HostError(host, what if what in sentences else "failed", sentence, hint)
