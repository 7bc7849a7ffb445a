"""Everything that another machine can ask of this one: each method is a question, encoded by its annotations.

Questions that change something are marked (:func:`acts`): each is carried out once, however often the same call arrives
(:mod:`.calls`).
"""

from __future__ import annotations

import inspect
import os
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, TypeVar, get_type_hints

from ...wire import storage
from ...wire.queues import Queue
from ...wire.records import Request
from ...wire.rundir import RunDir
from ..follow import Budget
from ..launching.drafts import Draft
from ..launching.explaining import Explanation
from ..launching.form_fields import Preview
from ..logview.counting import Tally
from ..logview.document import LogDocument
from ..logview.searching import wanted_of
from ..model.errors import OperationError
from ..model.snapshot import RunSnapshot, SeriesView
from ..profiles.library import ProfileEntry
from ..runs.details import Section
from ..runs.logged import Seen, Wanted
from ..runs.queueing import Moved
from ..runs.removal import Removable, Removed
from ..runs.window import Window
from ..sharing.export import Table
from .calls import Call
from .codec import form_of
from .forms import Form
from .local import LocalServices
from .offering import Launches
from .placing import launches_from
from .view import Counted, FormFace, FormRecipe, Found, LogEnd, Piece, RunRef

F = TypeVar("F", bound=Callable[..., Any])
WINDOW_SECONDS = 20.0
END_BYTES = 4096
"""Bytes at the end of a log that are sent as it grows; what lies between two such ends is fetched when needed."""
AROUND_BYTES = 1 << 13
MOST_BYTES = 1 << 17
"""The most bytes of a log in one answer."""
_HELD_LOGS = 4


def acts(method: F) -> F:
    """Mark a question that changes something; repeating the same call changes nothing more."""
    method.acts = True  # type: ignore[attr-defined]
    return method


class Signature(NamedTuple):
    """How the arguments and the answer of a question are encoded."""

    arguments: tuple[tuple[str, Form[Any]], ...]
    answer: Form[Any]
    acts: bool
    """True if it changes something."""


@lru_cache(None)
def signature_of(name: str) -> Signature:
    """The signature of a method of :class:`Desk`.

    Raises:
        OperationError: there is no such method.
    """
    method = getattr(Desk, name, None)
    if name.startswith("_") or not inspect.isfunction(method):
        raise OperationError(f"nothing there answers to {name[:40]}", "both sides need the same mpstui")
    hints = get_type_hints(method, include_extras=True)
    arguments = [one for one in inspect.signature(method).parameters if one != "self"]
    forms = tuple((one, form_of(hints[one])) for one in arguments)
    return Signature(forms, form_of(hints["return"]), getattr(method, "acts", False))


class Logs:
    """The logs being looked at, each read by one thread at a time."""

    def __init__(self) -> None:
        self._documents: OrderedDict[Path, tuple[Lock, LogDocument, dict[str, Tally]]] = OrderedDict()
        self._lock = Lock()

    def of(self, path: Path) -> tuple[Lock, LogDocument, dict[str, Tally]]:
        """A log with its lock and the counts for each search in it."""
        with self._lock:
            if path not in self._documents:
                self._documents[path] = Lock(), LogDocument(path), {}
            self._documents.move_to_end(path)
            while len(self._documents) > _HELD_LOGS:
                self._documents.popitem(last=False)
            return self._documents[path]

    def end(self, path: Path) -> LogEnd:
        """The end of a log, as it is sent while the log grows."""
        lock, document, _ = self.of(path)
        with lock:
            document.refresh()
            size = document.size_bytes
            data = document.bytes_between(max(0, size - END_BYTES), size)
            pieces = tuple(piece for piece in data.splitlines(keepends=True)) if b"\r" not in data else _cut(data)
            start, found = size - len(data), (document.opened, size, document.restarts, document.line_count)
            return LogEnd(*found, start, pieces, document.encoding, *document.span)


def _cut(data: bytes) -> tuple[bytes, ...]:
    whole = data.split(b"\n")
    return tuple(piece for piece in (*(part + b"\n" for part in whole[:-1]), whole[-1]) if piece)


class Desk:
    """Answers for one machine; calls may come from several threads."""

    def __init__(self, services: LocalServices, newest: Callable[[str], RunSnapshot | None]) -> None:
        """``newest``: the newest snapshot of a run."""
        self._services, self._newest = services, newest
        self._forms: OrderedDict[str, Draft] = OrderedDict()
        self.logs = Logs()

    def _run(self, ref: RunRef) -> RunSnapshot:
        found = self._newest(ref.run)
        if found is None:
            raise OperationError(f"there is no run {ref.run} there", "it may have been removed")
        return replace(found, attempt=ref.attempt) if ref.attempt else found

    # -- acting on runs

    @acts
    def act(self, call: Call, run: RunRef, action: str, options: Mapping[str, Any]) -> Request:
        """Send a request whose id is that of the call, so that it exists only once."""
        snapshot = self._run(run)
        return self._sent(call, snapshot) or self._acting(call).send(snapshot, action, **options)

    @acts
    def go_on(self, call: Call, run: RunRef) -> Request:
        """Start for real what the newest rehearsal has tried out."""
        snapshot = self._run(run)
        return self._sent(call, snapshot) or self._acting(call).go_on(snapshot)

    def _acting(self, call: Call) -> Any:
        return replace(self._services.actions, request_id=call.id)

    @staticmethod
    def _sent(call: Call, snapshot: RunSnapshot) -> Request | None:
        return storage.read_or_none(Request, RunDir(snapshot.dir).request(call.id))

    # -- what is known of runs

    def explain(self, run: RunRef) -> Explanation:
        return self._services.explain(self._run(run))

    def details(self, run: RunRef) -> tuple[Section, ...]:
        return self._services.details(self._run(run))

    def looked_into(self, runs: tuple[RunRef, ...]) -> tuple[RunSnapshot, ...]:
        return tuple(self._services.looked_into([self._run(one) for one in runs]))

    def window(self, run: RunRef, window: Window) -> Mapping[str, SeriesView]:
        """A part of its curves, point for point."""
        reader = self._services.window_reader(self._run(run), window)
        reader.read(Budget(WINDOW_SECONDS))
        return reader.curves

    def image(self, run: RunRef, wanted: Wanted) -> Seen:
        """One image, as large as it is to be drawn."""
        return self._services.image(self._run(run), wanted)

    def table(self, run: RunRef) -> Table:
        return self._services.table(self._run(run))

    # -- logs

    def log_piece(self, path: Path, start: int, end: int) -> Piece:
        """Some bytes of a log."""
        lock, document, _ = self.logs.of(path)
        with lock:
            if not document.opened:
                document.refresh()
            return self._piece(document, start, min(end, start + MOST_BYTES))

    @staticmethod
    def _piece(document: LogDocument, start: int, end: int) -> Piece:
        start = max(0, start)
        lines = document.lines_before(start)
        return Piece(document.restarts, start, document.bytes_between(start, end), lines)

    def log_search(self, path: Path, wanted: str, offset: int, backwards: bool, seconds: float) -> Found:
        """The next matching line; see :meth:`.LogDocument.search`."""
        lock, document, _ = self.logs.of(path)
        with lock:
            document.refresh()
            line = document.find(wanted_of(wanted), offset, backwards=backwards, seconds=seconds)
            if line is None:
                return Found(None, document.search_stopped_at)
            around = self._piece(document, line.offset - AROUND_BYTES // 2, line.offset + AROUND_BYTES)
            return Found(line.offset, None, around)

    def log_count(self, path: Path, wanted: str, seconds: float) -> Counted:
        """Continue counting the matching lines."""
        lock, document, tallies = self.logs.of(path)
        with lock:
            document.refresh()
            tally = tallies.setdefault(wanted, Tally(wanted_of(wanted)))
            if not document.count_on(tally, seconds):
                tally = tallies[wanted] = Tally(wanted_of(wanted))
                document.count_on(tally, seconds)
            return Counted(tally.count, tally.complete)

    def log_number(self, path: Path, wanted: str, offset: int) -> int | None:
        """The number of the line that begins at ``offset``, counting only matching lines."""
        lock, document, tallies = self.logs.of(path)
        with lock:
            return document.number_in(tallies[wanted], offset) if wanted in tallies else None

    def log_at_line(self, path: Path, number: int) -> Piece | None:
        """The text from line ``number`` on."""
        lock, document, _ = self.logs.of(path)
        with lock:
            document.refresh()
            lines = document.at_line(number, 1)
            return self._piece(document, lines[0].offset, lines[0].offset + AROUND_BYTES) if lines else None

    # -- launching

    def profiles(self) -> tuple[ProfileEntry, ...]:
        return tuple(self._services.launcher().entries())

    def form(self, recipe: FormRecipe) -> FormFace:
        draft = self._form(recipe)
        return FormFace(draft.title, draft.description, draft.fields)

    def preview(self, recipe: FormRecipe, values: Mapping[str, str]) -> Preview:
        return self._form(recipe).preview(values)

    def completed(self, recipe: FormRecipe, key: str, text: str) -> str | None:
        return self._form(recipe).completed(key, text)

    def launches(self, recipe: FormRecipe, values: Mapping[str, str]) -> Launches:
        """What a form would start, to be sent to another machine."""
        return launches_from(self._form(recipe).choices(values), values)

    @acts
    def launch(self, call: Call, recipe: FormRecipe, values: Mapping[str, str]) -> str:
        return self._form(recipe).launch(values, call=call.id)

    @acts
    def restart(
        self, call: Call, recipe: FormRecipe, run: RunRef, values: Mapping[str, str], rehearse: bool
    ) -> Request:
        """A new attempt with the values of a form."""
        snapshot = self._run(run)
        return self._sent(call, snapshot) or self._form(recipe).restart(
            snapshot, values, rehearse=rehearse, request_id=call.id
        )

    @acts
    def save_profile(self, call: Call, recipe: FormRecipe, values: Mapping[str, str], name: str) -> Path:
        return self._form(recipe).save(values, name, again=call.again)

    def _form(self, recipe: FormRecipe) -> Draft:
        key = repr(recipe)
        if key not in self._forms:
            self._forms[key] = self._made(recipe)
            while len(self._forms) > _HELD_LOGS:
                self._forms.popitem(last=False)
        return self._forms[key]

    def _made(self, recipe: FormRecipe) -> Draft:
        if recipe.values is not None:
            return self._form(recipe._replace(values=None)).asking_the_program(recipe.values)
        launcher = self._services.launcher()
        if recipe.profile is not None:
            return launcher.draft(recipe.profile)
        snapshot = self._run(recipe.run or RunRef(""))
        if recipe.branch_step is not None:
            return launcher.branch_of(snapshot, recipe.branch_step)
        return launcher.draft_of(snapshot, self._services.explain(snapshot).cure if recipe.cured else None)

    # -- queues, labels, removal

    @acts
    def move_in_queue(self, call: Call, run: RunRef, direction: str) -> Moved:
        return self._services.move_in_queue(self._run(run), direction, call.id)

    @acts
    def pause_queue(self, call: Call, group: str, paused: bool) -> Queue:
        return self._services.pause_queue(group, paused)

    @acts
    def label(self, call: Call, runs: tuple[RunRef, ...], what: str, before: str, text: str) -> None:
        self._services.label([self._run(one) for one in runs], what, before, text)

    def examine_removal(self, run: RunRef) -> Removable:
        return self._services.examine_removal(self._run(run))

    @acts
    def remove(self, call: Call, run: RunRef, keep_checkpoints: bool) -> Removed:
        if call.again and self._newest(run.run) is None:
            return self._services.removed_before(run.run)
        return self._services.remove(self._run(run), keep_checkpoints=keep_checkpoints)


def host_name() -> str:
    """What this machine calls itself."""
    return os.uname().nodename
