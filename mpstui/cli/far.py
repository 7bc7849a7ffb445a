"""``--host``: run a command on another machine, with its output, its exit code, and ctrl+c."""

from __future__ import annotations

import argparse
import math
import os
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ..core.actions import ACTIONS
from ..core.hosts.line import HostError, Line
from ..core.hosts.reopening import OFTEN_SECONDS, Reopening
from ..core.hosts.ssh import Knocking, connect, require_name
from ..core.model.errors import OperationError, UsageError
from ..core.model.home import resolve_home
from ..core.present import size as written
from ..core.settings import HostsSettings, load_settings
from ..wire import rundir
from .conversation import Conversation
from .relay import BROUGHT, ERR, OUT
from .session import warn

PASSING = frozenset({"cut", "frozen", "unreachable", "silent", "name", "transfer"})
"""Kinds of errors that may be temporary: the line is tried again."""
ACT_SECONDS = 60.0
"""How long a command that acts tries to get its line back, in seconds."""
_ACT = frozenset({"launch", "run", "restart", "branch", "queue", "note", "tag", "rename", "remove"})


def take_hosts(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the values of ``--host`` before a ``--``, and the words without them.

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
    """Run a command on the one named host, and return its exit code.

    Args:
        words: the command as typed, without hosts.
        args: the same, parsed.

    Raises:
        UsageError: several hosts are named, or the command makes no sense there.
        HostError: the machine cannot be reached, or the line was cut.
    """
    if len(set(hosts)) > 1:
        raise UsageError(f"mpstui {words[0]} works on one host at a time", "`mpstui ps` lists the runs of several")
    from .main import HERE_ALONE

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
    """Run `report` or `export` there, and write its files here under the usual names; with ``--follow``, repeatedly."""
    from ..core.sharing.export import write_file
    from .share import HERE, picture_of, require_folder, require_place, say_where, told_run, write_each, write_tracked

    require_place(args)
    made_here = getattr(args, "to", "") in HERE
    if made_here:
        words = [words[0], "--undrawn", *words[1:]]
    written: dict[str, Path] = {}
    brought: list[tuple[str, bytes]] = []

    def write(name: str, content: bytes) -> None:
        path = written.get(name) or _path_here(name, args)
        try:
            if made_here and args.to not in ("svg", "png"):
                path, _ = write_tracked(told_run(content), args)
            else:
                write_file(path, picture_of(told_run(content), args) if made_here else content)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OperationError(f"{path} cannot be written: {error.strerror or error}") from error
        written[name] = path

    def take(kind: bytes, data: bytes) -> None:
        if kind == ERR:
            _show(kind, data)
        elif kind == BROUGHT:
            name, _, packed = data.partition(b"\0")
            brought.append((Path(name.decode()).name, zlib.decompress(packed)))
            if getattr(args, "follow", False):
                write(*brought.pop())

    code = _carried(host, settings, words, args, take, bring=True)
    require_folder(args, len(brought))
    complete = write_each(brought, lambda one: write(*one))
    for path in written.values():
        say_where(path)
    return code if complete else code or 1


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
    """Run a command on a host, over as many lines as it takes, and return its exit code.

    If the line is cut, a command that watches resumes where it was. One that acts is sent again with the same id, so
    that it acts only once, for up to `ACT_SECONDS`.
    """
    follows = words[0] in ("wait", "follow") or bool(getattr(args, "follow", False))
    acts = words[0] in _ACT or any(words[0] == one.command for one in ACTIONS)
    begun, reopening = time.monotonic(), Reopening(Knocking(host, settings, os.environ))
    patience = ACT_SECONDS if acts else (getattr(args, "timeout", None) or math.inf)
    known: dict[str, Any] = {"call": rundir.new_request(words[0], 0, time.time()).id} if acts else {}
    was_there = False
    while True:
        conversation, opened = None, math.inf
        try:
            with _line(host, settings) as line:
                carried, opened = known if follows or acts else None, time.monotonic()
                conversation = Conversation(line, words, told, bring=bring, known=carried, holds=follows)
                return conversation.run()
        except HostError as error:
            if conversation is not None and acts:
                begun = time.monotonic()
            known["waited"] = time.monotonic() - begun
            was_there = was_there or conversation is not None
            is_asked_to_end = conversation is not None and conversation.is_asked_to_end
            if not (was_there and (follows or acts)) or error.kind not in PASSING or is_asked_to_end:
                raise
            if known["waited"] > patience:
                doubt = f"{error}, and it is not known whether it was carried out" if acts else str(error)
                raise HostError(
                    host, error.kind, doubt.removeprefix(f"{host}: "), f"`mpstui ps --host {host}`"
                ) from None
            if conversation is not None:
                known |= conversation.place
                since = time.strftime("%H:%M:%S", time.localtime(conversation.heard_at))
                goes_on = "it is asked again, and carried out once," if acts else "this continues"
                warn(f"{error.sentence} since {since}; {goes_on} as soon as it is back")
            reopening.ended(max(0.0, time.monotonic() - opened), error.kind)
        reopening.pause(max(0.0, min(OFTEN_SECONDS, patience - known["waited"])))


class Answer(NamedTuple):
    """What a command printed on a host, and its exit code."""

    host: str
    output: bytes
    errors: bytes
    code: int
    line: Line
    """The line over which it came, now closed."""
    seconds: float
    """How long the far end took to answer."""


def ask_all(hosts: Sequence[str], words: Sequence[str]) -> list[Answer | HostError]:
    """Run one command on all hosts at once, without a terminal; returns the answers in the hosts' order."""
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
                code = Conversation(line, words, lambda kind, data: told[kind].extend(data), terminal=False).run()
            found[host] = Answer(host, bytes(told[OUT]), bytes(told[ERR]), code, line, seconds)
        except HostError as error:
            found[host] = error
        except OSError as error:
            found[host] = HostError(host, "failed", str(error.strerror))

    # Daemon threads, not a pool: ctrl+c must not wait for a machine that does not answer.
    threads = [threading.Thread(target=ask, args=(host,), daemon=True) for host in hosts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[host] for host in hosts]


def stream(host: str, words: Sequence[str], told: Callable[[bytes], None]) -> None:
    """Run a command on a host until it ends there, calling ``told`` with each line that it prints.

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
        Conversation(line, words, take, terminal=False).run()


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
