"""The far end of a line: a monitor of this machine's runs, which sends what changes and does what it is asked.

It lives as long as its line: when that ends, or nothing has been received for a while, it ends too. Runs do not.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any

from ... import __version__
from ...wire.records import Ack
from ..model.errors import OperationError, ReportedError, UsageError
from ..model.home import resolve_home
from ..model.snapshot import RunSnapshot
from .calls import Call, CallBook
from .channels import TOLD, Teller
from .codec import form_of
from .desk import Desk, host_name, signature_of
from .forms import EXACT, Malformed
from .frames import Frames, Garbled
from .local import LocalServices
from .outbox import Outbox
from .view import COLUMNS, Answers, Greeting, Listing, LogEnd, MachineReading, Raced, View

LIST_BYTES, RUN_BYTES = 800.0, 1700.0
"""Bytes per second that the list may take, and that everything else on the screen may take."""
SILENCE_SECONDS = 60.0
"""The other side sends something more often; after this long it is gone."""
_TICK_SECONDS, _QUIET_SECONDS, _LOG_TICK_SECONDS = 0.25, 0.5, 0.1
_READING_SHARE, _LONGEST_REST = 0.1, 1.0
_SLICE_SECONDS = 0.03
_MACHINE_SECONDS = 2.0
_RESPAWN_SECONDS = 5.0
_CALLERS = 4
_CURVES_AT_ONCE = 2
_OURS = __name__.partition(".")[0]


class Session:
    """One line, from its first message to its end."""

    def __init__(self, services: LocalServices, frames: Frames) -> None:
        self._services, self._frames = services, frames
        self._ended, self._woken, self._read = Event(), Event(), Event()
        self._outbox = Outbox(frames, self._end)
        self._teller = Teller(self._outbox)
        self._desk = Desk(services, self._newest)
        self._book = CallBook(services.home.state / "calls")
        self._view = View()
        self._looked_at = False
        """True once a view has come. Nothing is sent before: until then the other side does not know our clock."""
        self._calls: SimpleQueue[tuple[str, str, Any, bool]] = SimpleQueue()
        self._snapshots: tuple[RunSnapshot, ...] = ()
        self._listed: dict[str, tuple[RunSnapshot, RunSnapshot]] = {}
        """For each run, its snapshot and what the list shows of it."""
        self._new_curves = 0
        """How many more runs may be sent with their first curve in this round."""
        self._machine: MachineReading | None = None
        self._heard = self._changed = self._told_at = time.monotonic()
        """When something was last received, when a run last changed, and when all runs were last looked at."""

    def run(self) -> None:
        """Serve until the line ends."""
        self._book.forget()
        greeting = Greeting(
            __version__, host_name(), str(self._services.home.state), self._services.clock(), os.getpid()
        )
        self._outbox.put(["hello", form_of(Greeting).encode(greeting, EXACT)], urgent=True)
        for work in (self._listen, self._sample, *(self._answer for _ in range(_CALLERS))):
            Thread(target=work, daemon=True).start()
        try:
            self._tell()
        finally:
            self._outbox.close()

    def _end(self) -> None:
        self._ended.set()
        self._woken.set()

    def _newest(self, run: str) -> RunSnapshot | None:
        return next((one for one in self._snapshots if one.run == run), None)

    # -- what is heard

    def _listen(self) -> None:
        try:
            while (message := self._frames.receive()) is not None:
                self._heard = time.monotonic()
                self._hear(message)
        except (Garbled, Malformed, OSError, ValueError, KeyError, TypeError, IndexError) as error:
            print(f"mpstui: what came over the connection makes no sense: {error}", file=sys.stderr)
        self._end()

    def _hear(self, message: Any) -> None:
        what, *rest = message
        if what == "got":
            self._outbox.confirm(int(rest[0]))
        elif what == "ping":
            behind = round(time.monotonic() - self._told_at, 2)  # a disk may hang while answers still come
            self._outbox.put(["pong", rest[0], self._services.clock(), behind], urgent=True)
        elif what == "view":
            self._view, self._looked_at = form_of(View).decode(rest[0], EXACT), True
            self._woken.set()
        elif what == "call":
            self._calls.put((rest[0], rest[1], rest[2], False))
        elif what == "off":
            self._calls.put((rest[0], "", None, True))

    # -- what is asked

    def _answer(self) -> None:
        while not self._ended.is_set():
            call, name, arguments, called_off = self._calls.get()
            self._read.wait()  # the first answers on a new line may be about any run
            try:
                came = self._called_off(call) if called_off else self._came(call, name, arguments)
            except ReportedError as error:
                came = {"fail": _told_error(error)}
            except Exception as error:  # noqa: BLE001 - whatever went wrong, the answer says so
                if isinstance(error, ImportError) and (error.name or "").startswith(_OURS):
                    print(f"mpstui: {error}", file=sys.stderr)
                    self._end()  # our own files were cleaned away: the next line brings them, and is asked again
                    return
                came = {"fail": _told_error(OperationError(f"{type(error).__name__}: {error}"))}
            self._outbox.put(["came", call, came])
            self._woken.set()

    def _called_off(self, call: str) -> Mapping[str, Any]:
        came = self._book.call_off(call)
        return {"never": True} if came is None else came or {"begun": True}

    def _came(self, call: str, name: str, arguments: Any) -> Mapping[str, Any]:
        signature = signature_of(name)
        values = {one: form.decode(arguments[one], EXACT) for one, form in signature.arguments if one != "call"}

        def work(given: Call) -> dict[str, Any]:
            if signature.acts:
                values["call"] = given
            try:
                found = getattr(self._desk, name)(**values)
            except ReportedError as error:
                return {"fail": _told_error(error)}
            return {"ok": signature.answer.encode(found, EXACT if name == "table" else TOLD)}

        return self._book.once(call, work) if signature.acts else work(Call(call))

    # -- what is answered

    def _tell(self) -> None:
        """Read and send, over and over."""
        monitor = self._services.monitor(COLUMNS)
        ghosts, respawn_at, read_at, was_there = None, time.monotonic() + _RESPAWN_SECONDS, 0.0, False
        while not self._ended.is_set():
            view, began, worked = self._view, time.monotonic(), time.thread_time()
            if began - self._heard > SILENCE_SECONDS:
                return
            if began >= read_at and (is_there := self._services.home.runs.is_dir()) < was_there:
                read_at = began + _QUIET_SECONDS  # renamed, or a share that is gone: its runs may still exist
            elif began >= read_at:
                was_there = is_there
                before, self._snapshots = self._snapshots, monitor.refresh(view.focus, view.selected, view.compared)
                self._read.set()
                if before != self._snapshots:
                    self._changed = began
                rest = min((time.thread_time() - worked) / _READING_SHARE, _LONGEST_REST)
                read_at = began + max(_QUIET_SECONDS if began - self._changed > 2.0 else _TICK_SECONDS, rest)
                if self._looked_at:
                    self._tell_all(view)
                self._told_at = time.monotonic()
                if began >= respawn_at:
                    respawn_at = began + _RESPAWN_SECONDS
                    with contextlib.suppress(ReportedError):
                        self._services.recovery.respawn_missing()
            behind = [run for run in _close(view) if monitor.read_on(run, 0.0)]
            if behind:
                monitor.read_on(behind[0], _SLICE_SECONDS)
            if view.raced is not None:
                ghosts = ghosts or self._services.ghosts()
                live = self._newest(view.raced)
                found = ghosts.look(live, self._snapshots, _SLICE_SECONDS) if live is not None else None
                if live is not None and not ghosts.pending:
                    self._teller.tell("race", Raced, Raced(found), RUN_BYTES)
            self._tell_logs(view)
            patience = 0.0 if behind else _LOG_TICK_SECONDS if view.logs else read_at - time.monotonic()
            self._woken.wait(max(0.005, min(patience, read_at - time.monotonic())))
            if self._woken.is_set():
                self._woken.clear()
                read_at = min(read_at, time.monotonic() + 0.02)

    def _tell_all(self, view: View) -> None:
        closely = _close(view)
        names = {"list", *(f"run:{run}" for run in closely), *(f"log:{path}" for path in view.logs)}
        names |= {"answers"} if view.asked else set()
        names |= {"machine"} if view.sampled is not None else set()
        names |= {"race"} if view.raced is not None else set()
        self._teller.keep(names)
        self._tell_list(closely)
        for run in closely:
            found = self._newest(run)
            if found is not None:
                self._tell_run(found)
        if view.asked:
            acks: dict[str, Ack] = {}
            for run, request in view.asked:
                snapshot = self._newest(run)
                ack = self._services.actions.answer(snapshot.dir, request) if snapshot is not None else None
                acks |= {request: ack} if ack is not None else {}
            self._teller.tell("answers", Answers, Answers(acks), RUN_BYTES, urgent=True)
        if view.sampled is not None and self._machine is not None:
            self._teller.tell("machine", MachineReading, self._machine, RUN_BYTES / 3)

    def _tell_list(self, closely: Sequence[str]) -> None:
        told: Listing | None = self._teller.told("list")
        before = told.runs if told is not None else {}
        turned = told is None or [*before] != [one.run for one in self._snapshots]
        turned = turned or any(_turned(one, before[one.run]) for one in self._snapshots)
        if not turned and not self._teller.may_tell("list"):
            return
        self._new_curves = 0 if told is None else _CURVES_AT_ONCE  # first the rows, then what is drawn in them
        runs = {one.run: self._in_list(one, told, one.run in closely) for one in self._snapshots}
        self._listed = {run: kept for run, kept in self._listed.items() if run in runs}
        listing = Listing(runs, self._services.paused_queues())
        self._teller.tell("list", Listing, listing, LIST_BYTES, urgent=turned)

    def _in_list(self, one: RunSnapshot, told: Listing | None, closely: bool) -> RunSnapshot:
        """A run as the list shows it; for one that is sent in full elsewhere, only its state counts here."""
        source, listed = self._listed.get(one.run, (None, None))
        if source is one and listed is not None:
            return listed
        before = told.runs.get(one.run) if told is not None else None
        if closely and before is not None and not _turned(one, before):
            return before
        series = one.series if one.brief else {} if before is None else before.series
        late = bool(series) and (before is None or not before.series) and self._new_curves <= 0
        self._new_curves -= bool(series) and (before is None or not before.series)
        series = {} if late else series
        bare = replace(one.numbers, beat=None)
        made = replace(one, seen=0.0, numbers=bare, series=series, events=(), checkpoints=(), ranks=(), brief=True)
        made = before if before is not None and made == before and made.series == before.series else made
        if not late:
            self._listed[one.run] = one, made
        return made

    def _tell_run(self, one: RunSnapshot) -> None:
        """Send a run in full, but add only a few new curves at a time."""
        told: RunSnapshot | None = self._teller.told(f"run:{one.run}")
        if told is None:
            one = replace(one, series={})
        elif len(one.series) > len(told.series):
            new = [name for name in one.series if name not in told.series][:_CURVES_AT_ONCE]
            one = replace(one, series={name: view for name, view in one.series.items() if name in (*told.series, *new)})
        urgent = told is None or _turned(one, told) or len(one.series) != len(told.series)
        self._teller.tell(f"run:{one.run}", RunSnapshot, replace(one, seen=0.0), RUN_BYTES, urgent=urgent)

    def _tell_logs(self, view: View) -> None:
        for path in view.logs:
            if self._teller.may_tell(f"log:{path}"):
                self._teller.tell(f"log:{path}", LogEnd, self._desk.logs.end(Path(path)), RUN_BYTES)

    # -- the machine

    def _sample(self) -> None:
        """Read the machine while somebody looks, on a thread of its own: a source may take seconds."""
        sampler = recorder = None
        while not self._ended.wait(_MACHINE_SECONDS if self._machine is not None else 0.2):
            run = self._view.sampled
            if run is None:
                continue
            sampler = sampler or self._services.sampler()
            snapshot = self._newest(run)
            trees = {run: (snapshot.pid,)} if snapshot is not None and snapshot.pid is not None else {}
            sample = sampler.sample(trees)
            telemetry = prices = None
            if snapshot is not None:
                if recorder is None or recorder[0] != run:
                    if recorder is not None:
                        recorder[1].close()
                    recorder = run, self._services.recorder(snapshot)
                telemetry = recorder[1].poll(snapshot, sample.system, sample.trees.get(run))
                with contextlib.suppress(UsageError):
                    prices = self._services.settings().energy
            self._machine = MachineReading(run, sample.system, sample.trees.get(run), telemetry, prices)


def _close(view: View) -> list[str]:
    """Runs that are sent in full."""
    return list(dict.fromkeys([*([view.focus] if view.focus is not None else []), *view.compared]))


def _turned(one: RunSnapshot, before: RunSnapshot) -> bool:
    """True if the state of a run has changed: that is sent at once, whatever else has to wait."""
    told = (one.state, one.health, one.attempts, one.exit, one.name, one.note, one.tags, one.paused)
    return told != (
        before.state,
        before.health,
        before.attempts,
        before.exit,
        before.name,
        before.note,
        before.tags,
        before.paused,
    )


def _told_error(error: ReportedError) -> dict[str, Any]:
    return {
        "usage": isinstance(error, UsageError),
        "sentence": error.sentence,
        "hint": error.hint,
        "field": error.field,
        "near": error.near,
    }


def main(arguments: Sequence[str] = ()) -> int:
    """Serve on standard input and output until they end; all other output goes to standard error.

    Args:
        arguments: a path to watch besides the runs, if any.
    """
    reads, writes = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(2, 1)
    home = resolve_home(os.environ)
    watching = Path(arguments[0]) if arguments else None
    services = LocalServices(home, dict(os.environ), Path.cwd(), time.time, watching)

    def write(data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(writes, view) :]

    Session(services, Frames(lambda most: os.read(reads, most), write)).run()
    sys.stderr.flush()
    os._exit(0)  # threads that wait for a disk or a source of telemetry must not keep it alive
