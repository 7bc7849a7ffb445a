"""``--host``: a command on another machine, its output, its exit code, and ctrl+c."""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ..core.hosts.line import HostError, Line
from ..core.hosts.ssh import connect, require_name
from ..core.model.errors import OperationError, UsageError
from ..core.model.home import resolve_home
from ..core.present import size as written
from ..core.settings import HostsSettings, load_settings
from ..wire import storage
from .relay import (
    ASKED,
    BROUGHT,
    ENDED,
    ERR,
    OUT,
    SIGNAL,
    SILENT_SECONDS,
    STILL_SECONDS,
    STILL_THERE,
    TYPED,
    Pieces,
    piece,
)
from .session import say, warn

HERE_ALONE = {
    "completion": "it completes words of this machine",
    "demo": "`mpstui launch quickstart --host NAME` starts the quick start there",
    "watch": "`mpstui --host NAME` shows what runs there",
}
"""Commands that make no sense elsewhere, and what is meant instead."""
_ASKS_AGAIN = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def take_hosts(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The values of ``--host`` before a ``--``, and the words without them.

    Raises:
        UsageError: the last word is ``--host``.
    """
    hosts: list[str] = []
    rest: list[str] = []
    left = iter(words)
    for word in left:
        option, equals, value = word.partition("=")
        if word == "--":
            rest += [word, *left]
        elif option != "--host":
            rest.append(word)
        elif (host := value if equals else next(left, "")) != "":
            hosts.append(host)
        else:
            raise UsageError("--host needs the name of a machine", "such as `mpstui ps --host gpu1`")
    return hosts, rest


def run_there(hosts: Sequence[str], words: Sequence[str], args: argparse.Namespace) -> int:
    """Run a command on the one host that is named; its exit code.

    Args:
        words: the command as it was typed, without hosts.
        args: the same as its parser reads them.

    Raises:
        UsageError: several hosts are named, or the command makes no sense there.
        HostError: the machine cannot be reached, or the line was cut.
    """
    if len(set(hosts)) > 1:
        raise UsageError(f"mpstui {words[0]} works on one host at a time", "`mpstui ps` lists the runs of several")
    if words[0] in HERE_ALONE:
        raise UsageError(f"mpstui {words[0]} works on this machine alone", HERE_ALONE[words[0]])
    settings = load_settings(resolve_home(os.environ)).hosts
    if words[0] in ("report", "export"):
        return _write_here(hosts[0], settings, words, args)
    with _line(hosts[0], settings) as line:
        return _Conversation(line, words, _show).run()


def _write_here(host: str, settings: HostsSettings, words: Sequence[str], args: argparse.Namespace) -> int:
    """What the command would write there is written here, under the name it would have here."""
    from ..core.sharing.export import unused_path

    if getattr(args, "follow", False):
        raise UsageError("a page that follows is written on its own machine", "log in there, or leave --follow out")
    if getattr(args, "to", "") in ("svg", "png"):
        raise UsageError("charts are drawn by the screen, which is not sent", "`--to csv` has the points")
    brought: list[tuple[str, bytes]] = []

    def take(kind: bytes, data: bytes) -> None:
        if kind == ERR:
            _show(kind, data)
        elif kind == BROUGHT:
            name, _, content = data.partition(b"\0")
            brought.append((Path(name.decode()).name, content))

    with _line(host, settings) as line:
        code = _Conversation(line, words, take, bring=True).run()
    folder = Path(args.output or "")
    if getattr(args, "to", "") == "tensorboard":
        folder = args.output or Path(f"{args.run}-tensorboard")
        folder.mkdir(parents=True, exist_ok=True)
    for name, content in brought:
        own = args.output is not None and not folder.is_dir()
        path = folder if own else unused_path(folder, Path(name).stem, Path(name).suffix.lstrip("."))
        try:
            storage.write_bytes(path, content)
        except OSError as error:
            raise OperationError(f"{path} cannot be written: {error.strerror or error}") from error
        say(str(path))
    return code


class Answer(NamedTuple):
    """What a command on a host printed, and how it ended."""

    host: str
    output: bytes
    errors: bytes
    code: int
    line: Line
    """Over which it came, ended."""
    seconds: float
    """Until the far end was there."""


def ask_all(hosts: Sequence[str], words: Sequence[str]) -> list[Answer | HostError]:
    """Run one command on all hosts at once, without a terminal; what came of it by host, in their order."""

    for host in hosts:
        require_name(host)
    settings = load_settings(resolve_home(os.environ)).hosts
    found: dict[str, Answer | HostError] = {}

    def ask(host: str) -> None:
        told = {OUT: bytearray(), ERR: bytearray()}
        begun = time.monotonic()
        try:
            with _line(host, settings) as line:
                seconds = time.monotonic() - begun
                code = _Conversation(line, words, lambda kind, data: told[kind].extend(data), terminal=False).run()
            found[host] = Answer(host, bytes(told[OUT]), bytes(told[ERR]), code, line, seconds)
        except HostError as error:
            found[host] = error
        except OSError as error:
            found[host] = HostError(host, "failed", str(error.strerror))

    # No pool: ctrl+c does not wait for a machine that does not answer.
    threads = [threading.Thread(target=ask, args=(host,), daemon=True) for host in hosts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[host] for host in hosts]


@contextmanager
def _line(host: str, settings: HostsSettings) -> Iterator[Line]:
    def sending(size: int) -> None:
        if sys.stderr.isatty():
            warn(f"sending mpstui to {host}, this once: {written(size)}")

    line = connect(host, settings, ("relay",), environ=os.environ, sending=sending)
    try:
        yield line
    finally:
        line.close(0.2)


def _show(kind: bytes, data: bytes) -> None:
    stream = (sys.stdout if kind == OUT else sys.stderr).buffer
    stream.write(data)
    stream.flush()


class _Conversation:
    """One command's: what is typed and signalled goes there, what it prints comes here.

    Args:
        told: called with each part of what comes, and its kind.
        terminal: what is a terminal here is one there.
        bring: the command takes ``-o``; what it writes comes here.
    """

    def __init__(
        self,
        line: Line,
        words: Sequence[str],
        told: Callable[[bytes, bytes], None],
        *,
        terminal: bool = True,
        bring: bool = False,
    ) -> None:
        self._line, self._told = line, told
        self._sending, self._over = threading.Lock(), threading.Event()
        self._patience = SILENT_SECONDS
        on_terminal = [terminal and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)]
        self._typing = on_terminal[0] and any(on_terminal[1:])
        size = shutil.get_terminal_size()
        asked = {
            "words": list(words),
            "bring": bring,
            "terminal": [self._typing, *on_terminal[1:]],
            "columns": size.columns,
            "lines": size.lines,
            "encoding": (sys.stdout.encoding if terminal else None) or "utf-8",
            "environ": {name: os.environ[name] for name in ("TERM", "COLORTERM", "NO_COLOR") if name in os.environ},
        }
        self._send(ASKED, storage.dump_bytes(asked))

    def run(self) -> int:
        """Until it ends; its exit code."""
        threading.Thread(target=self._attend, daemon=True).start()
        on_main = threading.current_thread() is threading.main_thread()
        before = {number: signal.signal(number, self._pass_on) for number in _ASKS_AGAIN} if on_main else {}
        try:
            return self._listen()
        finally:
            self._over.set()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _listen(self) -> int:
        arriving = Pieces(self._read)
        while found := arriving.next():
            kind, data = found
            if kind == ENDED:
                return int(data)
            if kind in (OUT, ERR, BROUGHT):
                self._told(kind, data)
        raise self._line.failure()

    def _read(self, most: int) -> bytes | None:
        reads, patience = self._line.reads, self._patience
        if not select.select([reads], [], [], patience)[0]:
            raise HostError(self._line.host, "frozen", f"nothing was heard for {patience:.0f} s", "runs there go on")
        return reads.read(most)

    def _attend(self) -> None:
        """Send what is typed, and say now and then that we are there."""
        watched = [sys.stdin] if self._typing else []
        while not self._over.is_set():
            try:
                if not select.select(watched, [], [], STILL_SECONDS)[0]:
                    self._send(STILL_THERE)
                elif os.tcgetpgrp(0) != os.getpgrp():  # in the background, where reading would stop us
                    self._over.wait(STILL_SECONDS)
                    self._send(STILL_THERE)
                else:
                    typed = os.read(0, 1 << 12)
                    self._send(TYPED, typed)
                    watched = watched if typed else []
            except (OSError, ValueError, HostError):
                return  # whoever listens will say so

    def _send(self, kind: bytes, data: bytes = b"") -> None:
        if self._sending.acquire(timeout=1):  # a line that hangs must not hold up a ctrl+c
            try:
                self._line.send(piece(kind, data))
            finally:
                self._sending.release()

    def _pass_on(self, number: int, _: object) -> None:
        """The first time the command is asked to end; who asks again does not wait for it."""
        if self._patience != SILENT_SECONDS:
            raise KeyboardInterrupt
        self._patience = 2 * STILL_SECONDS
        with contextlib.suppress(HostError):
            self._send(SIGNAL, str(number).encode())
