"""`mpstui ps --watch`: the list of runs, printed again whenever it changes."""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..core.hosts.line import HostError
from ..core.model.errors import UsageError
from ..core.present import moment_of_day
from ..wire import storage
from ..wire.storage import UnreadableRecord
from .ps import NEWEST, far_words, joined, print_rows, rows_from, table
from .run_rows import Row, row_of
from .session import Session, keys_of_path, one_line, print_json, respawn_missing_supervisors, rest, say, warn

if TYPE_CHECKING:
    from ..core.model.snapshot import RunSnapshot
    from ..core.runs.query import Query

RESPAWN_SECONDS = 5.0
FIRST_SECONDS = 10.0
"""How long the first list waits for each machine's first answer."""
AGAIN_SECONDS = 5.0
"""How long after its line has ended a machine is contacted again."""


def watch(args: argparse.Namespace, wanted: Query | None) -> int:
    """Show the list until ctrl+c, or until its reader is gone."""
    if not args.every >= 0.1:
        raise UsageError(f"--every {args.every:g} is too short", "a tenth of a second at least")
    source = _Hosts(args) if args.hosts else _Here(args, wanted)
    frame, before = _Frame(in_place=not (args.json or args.rows)), None
    try:
        while True:
            rows, left_out, notes = source.look()
            lines = [] if args.json or args.rows else [*table(rows, left_out, wanted), *notes]
            now: Sequence[object] = lines or [{**row.json, "updated": None, "word": row.word} for row in rows]
            if now != before or frame.is_outgrown:
                before = now
                if args.rows:
                    print_rows(rows, left_out)
                elif args.json:
                    print_json([row.json for row in rows], indent=None)
                else:
                    frame.show(lines)
                sys.stdout.flush()
            rest(args.every)
    except KeyboardInterrupt:
        if sys.stdout.isatty():
            say("")  # behind the ^C
        raise


class _Here:
    """The runs of this machine."""

    def __init__(self, args: argparse.Namespace, wanted: Query | None) -> None:
        from ..core.runs.monitor import Monitor
        from ..core.runs.summaries import Summaries

        self._all, self._wanted = args.all, wanted
        self._session, self._respawned = Session(), 0.0
        home = self._session.home
        self._monitor = Monitor(home, kept=Summaries(home.state / "cache" / "runs.jsonl"))
        self._paths = args.paths
        for path in args.paths:
            keys_of_path(self._monitor, path)
        self._monitor.refresh_whole()

    def look(self) -> tuple[list[Row], int, list[str]]:
        if not self._paths and time.monotonic() - self._respawned >= RESPAWN_SECONDS:
            respawn_missing_supervisors(self._session)
            self._respawned = time.monotonic()
        seen = self._monitor.refresh()
        if self._paths:
            return [row for row in map(row_of, filter(self._is_there, seen)) if self._matches(row)], 0, []
        kept = [one for place, one in enumerate(seen) if self._all or place < NEWEST or one.state.active]
        return [row for row in map(row_of, kept) if self._matches(row)], len(seen) - len(kept), []

    def _matches(self, row: Row) -> bool:
        return self._wanted is None or self._wanted.matches(row.findable())

    def _is_there(self, one: RunSnapshot) -> bool:
        """True if the run is at a path that was named, not in this home."""
        return "/" in one.run


class _Hosts:
    """The runs of several machines, each reporting changes over a line that is reopened when it ends."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._words = [*far_words(args), "--watch", "--every", f"{args.every:g}"]
        self._told: dict[str, dict[str, Any]] = {}
        self._lost: dict[str, HostError] = {}
        self._heard: dict[str, float] = {}
        self._as_lines = args.json
        self._warned: dict[str, str] = {}
        self._hosts = list(dict.fromkeys(args.hosts))
        self._news = threading.Condition()
        for host in self._hosts:
            threading.Thread(target=self._listen, args=(host,), daemon=True).start()

    def look(self) -> tuple[list[Row], int, list[str]]:
        with self._news:  # the first list waits for all machines
            self._news.wait_for(lambda: len({*self._told, *self._lost}) == len(self._hosts), FIRST_SECONDS)
        lost, rows, notes = dict(self._lost), list[Row](), list[str]()
        for host, told in list(self._told.items()):
            heard = {"heard": self._heard[host]} if host in lost else {}
            rows += [Row({**row.json, **heard}, row.word, row.loss_is_finite) for row in rows_from(host, told)]
        for host, error in lost.items():
            since = f"; last heard {moment_of_day(self._heard[host], time.time())}" if host in self._heard else ""
            notes.append(one_line(f"{error.sentence}{since}"))
        told_of = {host: error.sentence for host, error in lost.items()}
        for host, sentence in told_of.items() if self._as_lines else ():
            if self._warned.get(host) != sentence:
                warn(sentence)
        self._warned = told_of
        return joined(rows), sum(told["left_out"] for told in self._told.values()), notes

    def _listen(self, host: str) -> None:
        from .far import stream

        def take(line: bytes) -> None:
            with self._news:
                self._told[host], self._heard[host] = storage.load_object(line), time.time()
                self._lost.pop(host, None)
                self._news.notify()

        while True:
            try:
                stream(host, self._words, take)
                lost = HostError(host, "failed", "its list of runs has ended")
            except HostError as error:
                lost = error
            except (OSError, UnreadableRecord) as error:
                lost = HostError(host, "noise", f"its list of runs cannot be read: {error}")
            with self._news:
                self._lost[host] = lost
                self._news.notify()
            time.sleep(AGAIN_SECONDS)


class _Frame:
    """Redraws the list in place on a terminal; a file, a pipe or a dumb terminal gets one list after the other."""

    def __init__(self, *, in_place: bool) -> None:
        self._in_place = in_place and sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")
        self._size, self._height = self._now(), 0
        self._begun = False

    def _now(self) -> os.terminal_size | None:
        return os.get_terminal_size(sys.stdout.fileno()) if self._in_place else None

    @property
    def is_outgrown(self) -> bool:
        """True if the window's size has changed since."""
        return self._now() != self._size

    def show(self, lines: Sequence[str]) -> None:
        size = self._now()
        if size is None:
            for line in ["", *lines] if self._begun else lines:
                say(line)
            self._begun = True
            return
        # A resized window has wrapped the lines at unknown places, so it is cleared.
        back = "\x1b[2J\x1b[H" if size != self._size else f"\x1b[{self._height}F" if self._height else ""
        shown = list(lines)
        if len(shown) >= size.lines > 2:
            shown = [*shown[: size.lines - 2], f"and {len(shown) - size.lines + 2} more lines"]
        # Wrapping is turned off so that each line takes one row.
        text = "".join(f"{one_line(line)}\x1b[K\r\n" for line in shown)
        sys.stdout.write(f"\x1b[?7l{back}{text}\x1b[J\x1b[?7h")
        self._size, self._height = size, len(shown)
