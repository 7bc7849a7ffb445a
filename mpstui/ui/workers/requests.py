"""The worker that does what the user asked for."""

from __future__ import annotations

import asyncio
import queue
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar, cast

from ...core.model.errors import ReportedError
from ..messages import DiagnosisReady, RequestAnswered, Toast
from ..rows import clean
from .worker import Post, Worker

if TYPE_CHECKING:
    from textual.dom import DOMNode
    from textual.message import Message

    from ...core.model.snapshot import RunSnapshot
    from ...wire.records import Request
    from ..services import Services

P = ParamSpec("P")
T = TypeVar("T")
_ANSWER_POLL_SECONDS = 0.1
_ANSWER_PATIENCE_SECONDS = 120.0


class _Awaited(NamedTuple):
    """A request that has not been answered yet."""

    run: str
    name: str
    folder: Path
    request: Request
    until: float
    alone: bool = True


async def aside(work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """Run something that may wait for a disk or a connection on a thread of its own, which does not delay leaving."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def tell(set_it: Callable[[Any], None], what: object) -> None:
        if not done.done():
            set_it(what)

    def run() -> None:
        set_it, what = done.set_result, cast("Any", None)
        try:
            what = work(*given, **named)
        except Exception as error:  # noqa: BLE001 - raised where it is waited for
            set_it, what = cast("Any", done.set_exception), error
        with suppress(RuntimeError):  # the program has ended
            loop.call_soon_threadsafe(tell, set_it, what)

    Thread(target=run, name="mpstui-aside", daemon=True).start()
    return await done


def attend(node: DOMNode, work: Coroutine[object, object, None]) -> None:
    """Have a screen, or the app, wait for something while it still takes keys; a newer wait replaces an older one."""
    node.run_worker(work, exclusive=True)


class RequestWorker(Worker):
    """Does what the user asked for, one job at a time, and waits for answers from supervisors and trainers."""

    name = "requests"

    def __init__(self, services: Services, post: Post, patience_seconds: float = _ANSWER_PATIENCE_SECONDS) -> None:
        super().__init__(post)
        self._services = services
        self._patience_seconds = patience_seconds
        self._jobs: queue.SimpleQueue[tuple[str, Callable[[], object]]] = queue.SimpleQueue()
        self._awaited: list[_Awaited] = []

    def ask(self, snapshot: RunSnapshot, name: str, write: Callable[[], Request], cost: str = "") -> None:
        """Write a request, say what it costs, and report the answer when it comes."""

        def job() -> None:
            request = write()
            until = time.monotonic() + self._patience_seconds
            self._awaited.append(_Awaited(snapshot.run, name, snapshot.dir, request, until))
            self._post(Toast(f"{name} requested" + (f" · {cost}" if cost else ""), run=snapshot.run))

        self._jobs.put((name, job))

    def ask_all(self, name: str, asked: Sequence[tuple[RunSnapshot, Callable[[], Request]]]) -> None:
        """Write a request to each of several runs, and say so once; a refusal is reported and stops no other."""

        def job() -> None:
            failures = []
            for snapshot, write in asked:
                try:
                    request, until = write(), time.monotonic() + self._patience_seconds
                    self._awaited.append(_Awaited(snapshot.run, name, snapshot.dir, request, until, alone=False))
                except ReportedError as error:
                    failures.append(error)
            if len(failures) < len(asked):
                self._post(Toast(f"{name} requested for {len(asked) - len(failures)} runs"))
            if failures:
                raise failures[0]

        self._jobs.put((name, job))

    def explain(self, snapshot: RunSnapshot) -> None:
        """Diagnose why an attempt ended."""
        self.do("diagnosis", lambda: DiagnosisReady(snapshot.run, snapshot.attempts, *self._services.explain(snapshot)))

    def do(self, what: str, work: Callable[[], Message], tell: Post | None = None) -> None:
        """Do something that takes a while and post its result; to ``tell`` if only a screen wants it."""
        self._jobs.put((what, lambda: (tell or self._post)(work())))

    def let_go(self, close: Callable[[], None]) -> None:
        """Close something after everything requested before is done."""
        self._jobs.put(("closing", close))

    def stop(self) -> None:
        """Stop the worker; requests that were not written yet are dropped."""
        self._stopped.set()
        self._jobs.put(("nothing", lambda: None))
        super().stop()

    def _work(self) -> float:
        try:
            what, job = self._jobs.get(timeout=_ANSWER_POLL_SECONDS if self._awaited else None)
        except queue.Empty:
            pass
        else:
            try:
                job()
            except ReportedError as error:
                hint = f" · {error.hint}" if error.hint else ""
                self._post(Toast(f"{what}: {clean(error.sentence + hint, 600)}", "error"))
            except Exception as error:  # noqa: BLE001 - whatever went wrong, the user who asked is told
                self._post(Toast(f"{what}: {clean(f'{type(error).__name__}: {error}', 300)}", "error"))
        for awaited in tuple(self._awaited):
            ack = self._services.actions.answer(awaited.folder, awaited.request.id)
            if ack is not None or time.monotonic() >= awaited.until:
                self._awaited.remove(awaited)
                self._post(RequestAnswered(awaited.run, awaited.name, awaited.request, ack, awaited.alone))
        return 0.0
