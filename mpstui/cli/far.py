"""``--host``: a command on another machine, its output, its exit code, and ctrl+c."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import select
import shutil
import signal
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

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
    PLACE,
    SIGNAL,
    SILENT_SECONDS,
    STILL_SECONDS,
    STILL_THERE,
    TYPED,
    Pieces,
    piece,
)
from .resuming import Held
from .session import say, warn

HERE_ALONE = {
    "completion": "it completes words of this machine",
    "demo": "`mpstui launch quickstart --host NAME` starts the quick start there",
}
"""Commands that make no sense elsewhere, and what is meant instead."""
PASSING = frozenset({"cut", "frozen", "unreachable", "silent", "name", "transfer"})
"""Reasons for which there is no line now, and may be one soon."""
FIRST_BACKOFF, MOST_BACKOFF = 0.1, 15.0
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
    if words[0] == "watch":
        from .screen import watch_there

        return watch_there(hosts[0], args)
    settings = load_settings(resolve_home(os.environ)).hosts
    if words[0] in ("report", "export"):
        return _write_here(hosts[0], settings, words, args)
    return _carried(hosts[0], settings, words, args, _show)


def _write_here(host: str, settings: HostsSettings, words: Sequence[str], args: argparse.Namespace) -> int:
    """What the command would write there is written here, under the name it would have here, and again if it does."""
    from .share import HERE, picture_of, told_run, write_tracked

    made_here = getattr(args, "to", "") in HERE
    if made_here:
        words = [words[0], "--undrawn", *words[1:]]
    written: dict[str, Path] = {}
    brought: list[tuple[str, bytes]] = []

    def write(name: str, content: bytes) -> None:
        path = written.setdefault(name, _path_here(name, args))
        try:
            if made_here and args.to not in ("svg", "png"):
                written[name], _ = write_tracked(told_run(content), args)
            else:
                storage.write_bytes(path, picture_of(told_run(content), args) if made_here else content)
        except OSError as error:
            raise OperationError(f"{path} cannot be written: {error.strerror or error}") from error

    def take(kind: bytes, data: bytes) -> None:
        if kind == ERR:
            _show(kind, data)
        elif kind == BROUGHT:
            name, _, packed = data.partition(b"\0")
            brought.append((Path(name.decode()).name, zlib.decompress(packed)))
            if getattr(args, "follow", False):
                write(*brought.pop())

    code = _carried(host, settings, words, args, take, bring=True)
    for name, content in brought:
        write(name, content)
    for path in written.values():
        say(str(path))
    return code


def _path_here(name: str, args: argparse.Namespace) -> Path:
    from ..core.sharing.export import unused_path

    folder = Path(args.output or "")
    own = args.output is not None and not folder.is_dir()
    return folder if own else unused_path(folder, Path(name).stem, Path(name).suffix.lstrip("."))


def _carried(
    host: str,
    settings: HostsSettings,
    words: Sequence[str],
    args: argparse.Namespace,
    told: Callable[[bytes, bytes], None],
    *,
    bring: bool = False,
) -> int:
    """The exit code of a command on a host; one that only looks until something ends goes on over the next line."""
    goes_on = words[0] in ("wait", "follow") or bool(getattr(args, "follow", False))
    begun, backoff = time.monotonic(), FIRST_BACKOFF
    place: Mapping[str, Any] = {}
    was_there = False
    while True:
        conversation = None
        waited = time.monotonic() - begun
        try:
            with _line(host, settings) as line:
                conversation = _Conversation(
                    line, words, told, bring=bring, known={**place, "waited": waited} if goes_on else None
                )
                return conversation.run()
        except HostError as error:
            was_there = was_there or conversation is not None
            is_late = waited > (getattr(args, "timeout", None) or math.inf)
            if not (goes_on and was_there) or error.kind not in PASSING or is_late:
                raise
            if conversation is not None:
                if conversation.is_asked_to_end:
                    raise
                place = conversation.place or place
                since = time.strftime("%H:%M:%S", time.localtime(conversation.heard_at))
                warn(f"{error.sentence} since {since}; this goes on as soon as it is back")
                backoff = FIRST_BACKOFF if time.monotonic() - begun - waited > 2 * MOST_BACKOFF else backoff
        time.sleep(backoff)
        backoff = min(MOST_BACKOFF, 2 * backoff)


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


def stream(host: str, words: Sequence[str], told: Callable[[bytes], None]) -> None:
    """Run a command on a host for as long as it goes on there, and tell each line that it prints.

    Raises:
        HostError: the machine cannot be reached, or the line was cut.
    """
    kept = bytearray()

    def take(kind: bytes, data: bytes) -> None:
        if kind == OUT:
            kept.extend(data)
            while (end := kept.find(b"\n")) >= 0:
                told(bytes(kept[:end]))
                del kept[: end + 1]

    require_name(host)
    with _line(host, load_settings(resolve_home(os.environ)).hosts) as line:
        _Conversation(line, words, take, terminal=False).run()


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
        known: of a command that goes on over the next line: how far it had got; None: it does not.
    """

    def __init__(
        self,
        line: Line,
        words: Sequence[str],
        told: Callable[[bytes, bytes], None],
        *,
        terminal: bool = True,
        bring: bool = False,
        known: Mapping[str, Any] | None = None,
    ) -> None:
        self._line, self._told = line, told
        self._sending, self._over = threading.Lock(), threading.Event()
        self._patience = SILENT_SECONDS if known is None else 3 * STILL_SECONDS
        self._goes_on, self._held = known is not None, Held()
        self.is_asked_to_end = False
        self.heard_at = time.time()
        on_terminal = [terminal and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)]
        self._typing = on_terminal[0] and any(on_terminal[1:])
        size = shutil.get_terminal_size()
        asked = {
            "words": list(words),
            "bring": bring,
            "known": known,
            "terminal": [self._typing, *on_terminal[1:]],
            "columns": size.columns,
            "lines": size.lines,
            "encoding": (sys.stdout.encoding if terminal else None) or "utf-8",
            "environ": {name: os.environ[name] for name in ("TERM", "COLORTERM", "NO_COLOR") if name in os.environ},
        }
        self._send(ASKED, storage.dump_bytes(asked))

    @property
    def place(self) -> Mapping[str, Any]:
        """How far the command had got with all that was printed here."""
        return self._held.place

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
            self.heard_at = time.time()
            if kind == ENDED:
                self._show(self._held.rest())
                return int(data)
            if kind == OUT:
                self._show(self._held.take(data) if self._goes_on else data)
            elif kind == PLACE and self._goes_on:
                self._show(self._held.take(places=data))
            elif kind in (ERR, BROUGHT):
                self._told(kind, data)
        raise self._line.failure()

    def _show(self, data: bytes) -> None:
        if data:
            self._told(OUT, data)

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
        if self.is_asked_to_end:
            raise KeyboardInterrupt
        self.is_asked_to_end = True
        self._patience = 2 * STILL_SECONDS
        with contextlib.suppress(HostError):
            self._send(SIGNAL, str(number).encode())
