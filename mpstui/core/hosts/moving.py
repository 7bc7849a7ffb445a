"""Moving a run between two machines: who does what, and what happens when a line breaks.

The steps, in this order; any of them may be the last one:

=========  ==========================================================================================
survey     both sides say whether it can be done, before anything changes
code       its code is sent while the training still runs
depart     the run saves and ends; its machine keeps hold of it
settle     its files arrive, apart from all other runs
leave      its machine hands it over: the decision, written durably there
accept     the other machine takes it over and starts it; asked again until it has said so
=========  ==========================================================================================

Until *leave* the run continues where it was, even if this program or a line dies. After it the run can only be started
at its destination. So there are never two of it, and never none: another `mpstui move` finishes what was interrupted.
"""

from __future__ import annotations

import platform
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from secrets import token_hex
from typing import Any, BinaryIO

from ...wire.moves import Move
from ..model.errors import OperationError, ReportedError, UsageError
from ..present import size, whole
from ..settings import HostSettings, HostsSettings
from .line import HostError
from .parcel import items_of
from .progress import Cancelled, Meter, Progress, Wish
from .sources import Staying, stays
from .ssh import LOCAL, connect, is_local
from .talk import PAUSE_SECONDS, SILENT_SECONDS, TRIES, Place, opened_again

_CHUNK_BYTES = 1 << 16
LET_GO_SECONDS = 2 * SILENT_SECONDS
"""By then the far end of a broken line has released the run."""
SAME_TIME_SECONDS = 2.0
"""Clocks that differ by less count as equal."""


@dataclass(frozen=True, slots=True)
class MovePlan:
    """What a move would do; nothing has been done yet."""

    run: str
    name: str
    step: int | None
    active: bool
    costs: str
    """The work that is in no checkpoint and must be repeated, as the beginning of a sentence; empty: none."""
    device: str
    """What it will be trained on there."""
    code_files: int
    """How many files of its code are sent, and their size."""
    code_bytes: int
    run_bytes: int
    """Its records, curves, logs and checkpoints, before they are compressed."""
    warnings: tuple[str, ...]
    wishes: Mapping[str, Any]
    """What was asked for: ``device``, ``on`` (a scheduler there) and ``job`` (its options)."""
    survey: Mapping[str, Any]
    code: Mapping[str, Any]

    def sentences(self, to: str) -> list[str]:
        """What would be sent, and what it costs."""
        later = " or later" if self.active else ""
        step = f" from step {whole(self.step)}{later}" if self.step is not None else ""
        files = f"{self.code_files} file{'' if self.code_files == 1 else 's'}"
        code = [f"sent: {files} of code ({size(self.code_bytes)})"] if self.code_files else []
        saved = self.survey.get("saves")
        new = ", and the checkpoint that it saves now" if saved else ""
        if saved and (like := self.survey.get("checkpoint_bytes")) is not None:
            new += f" (the last one is {size(like)})"
        sent = f"sent: records, logs and checkpoints ({size(self.run_bytes)}){new}"
        costs = [f"{self.costs} done again there"] if self.costs else []
        older = self.survey.get("older", 0)
        left = [f"{older} older checkpoint{'' if older == 1 else 's'}"] if older else []
        behind = stays("behind", [Staying(*one) for one in self.survey.get("staying", ())], left)
        there = "this machine" if to == LOCAL else to
        return [f"{there} trains it on {self.device}{step}", *code, sent, *behind, *costs]


def mover(source: str, target: str, hosts: HostsSettings, environ: Mapping[str, str]) -> Mover:
    """A mover between two machines, by their names.

    Raises:
        UsageError: they are the same.
        HostError: one of them cannot be reached.
    """
    if source == target:
        raise UsageError(f"it is on {target} already", "name another machine", field="to")
    places = [partial(_place, one, hosts, environ) for one in (source, target)]
    return Mover(*places, names=(_called(source), _called(target)), paths=paths_between(source, target, hosts))


def _place(name: str, hosts: HostsSettings, environ: Mapping[str, str]) -> Place:
    return Place(connect(name, hosts, ("transfer",), environ=environ))


def _called(name: str) -> str:
    """A name for this machine that the other one understands too."""
    return platform.node() if name == LOCAL else name


def paths_between(source: str, target: str, hosts: HostsSettings) -> list[tuple[str, str]]:
    """Where folders of one machine lie on the other, derived from the settings that relate each to this machine."""
    here_there = hosts.named.get(target, HostSettings()).paths
    if is_local(source):
        return list(here_there.items())
    there_here = hosts.named.get(source, HostSettings()).paths
    return [(there, here_there.get(here, here)) for here, there in there_here.items()]


class Mover:
    """Moves runs from one machine to another."""

    def __init__(
        self,
        source: Callable[[], Place],
        target: Callable[[], Place],
        *,
        names: tuple[str, str],
        paths: Sequence[tuple[str, str]] = (),
        clock: Callable[[], float] = time.time,
        pause_seconds: float = PAUSE_SECONDS,
    ) -> None:
        """``source`` and ``target`` open a line each; one that broke is opened again.

        Args:
            names: of the two machines, for the records of the other one.
            paths: where folders of the source lie on the target.
        """
        self._open_source, self._open_target = source, target
        self._source, self._target = source(), target()
        self._names, self._paths, self._clock, self._pause = names, list(paths), clock, pause_seconds
        self._wish, self._meter = Wish(), Meter()

    def cancel(self) -> None:
        """End a move that another thread is carrying out, or that runs below a signal handler.

        The run continues where it was. Impossible once that has been decided; :attr:`.Progress.can_cancel` says so.
        """
        self._wish.take_back()

    def close(self) -> None:
        """End both far processes."""
        self._source.close()
        self._target.close()

    def plan(
        self, name: str, device: str | None = None, on: str | None = None, job: Mapping[str, str] | None = None
    ) -> MovePlan | dict[str, Any]:
        """Plan a move; if one was interrupted after the decision, finish it and return its answer.

        Args:
            device: what to train on there; None: the best there is.
            on: the scheduler that starts it there; None: as it was launched, if that scheduler is there too.
            job: options of the scheduler.

        Raises:
            OperationError, UsageError: it cannot be done.
        """
        survey = self._source.ask("survey", {"run": name})
        if moved := survey.get("moved"):
            if moved["to"] != self._names[1]:
                text = f"{survey['run']} is not here any more: it was moved to {moved['to']}"
                raise OperationError(
                    text, f"name the machine that it is on: `mpstui move HOST:{survey['run']} --to ...`"
                )
            return self._accept(str(survey["run"]), str(moved["token"]))
        code: dict[str, Any] = {"folder": None, "lacking": [], "bytes": 0}
        if survey["code"]:
            below = survey["cwd"].removeprefix(survey["root"])
            code = self._target.ask("code", {**survey["code"], "run": survey["run"], "below": below})
        wishes: dict[str, Any] = {"device": device, "on": on, "job": dict(job or {})}
        asked = {"run": survey["run"], "bytes": survey["bytes"] + code["bytes"], "cwd": "", **wishes}
        expected = self._target.ask("expect", {**asked, "launch": survey["launch"], "places": self._paths})
        trained_on = device or expected["device"]
        return MovePlan(
            run=survey["run"],
            name=survey["name"],
            step=survey["step"],
            active=survey["active"],
            costs=survey["costs"],
            device=trained_on,
            code_files=len(code["lacking"]),
            code_bytes=code["bytes"],
            run_bytes=survey["bytes"],
            warnings=tuple(expected["warnings"]),
            wishes={**wishes, "device": trained_on},
            survey=survey,
            code=code,
        )

    def carry_out(self, planned: MovePlan, tell: Callable[[Progress], None] = lambda now: None) -> dict[str, Any]:
        """Carry out a move; return the ``run``, ``attempt`` and ``step`` at which it continues.

        Args:
            tell: called with the progress, in the calling thread.

        Raises:
            OperationError: it continues, or can continue, where it was; the sentence says which.
        """
        self._meter = Meter(tell)
        token, survey, run = token_hex(8), planned.survey, planned.run
        places, cwd, is_leaving = [*self._paths], "", False
        for place in (self._source, self._target):
            place.cancel_by(self._wish.require)
        try:
            if survey["code"]:
                folder = planned.code["folder"] or self._send_code(planned)
                cwd = folder + survey["cwd"].removeprefix(survey["root"])
                places += [(survey["root"], folder), (survey["named"], cwd)]
            asked = {"run": run, "token": token, "from": self._names[0], "launch": survey["launch"], "cwd": cwd}
            self._meter.begin("it saves and ends" if planned.active else "its files are listed")
            is_leaving = True
            listed = self._source.ask("depart", {"run": run, "to": self._names[1]})
            self._settle(listed, {**asked, "places": places, **planned.wishes})
            self._wish.require()
        except ReportedError as error:
            raise self._kept(planned, error, is_leaving=is_leaving) from error
        self._meter.begin(f"{self._names[1]} takes it over", can_cancel=False)
        self._source.cancel_by(_nobody)
        self._target.cancel_by(_nobody)
        self._leave(planned, Move(token, self._names[1], self._clock(), listed["attempt"]))
        return {**self._accept(run, token), "step": listed["step"]}

    def _settle(self, listed: Mapping[str, Any], asked: dict[str, Any]) -> None:
        """Have the run assembled over there, with its times by that machine's clock.

        If the line to that machine breaks it is opened again: the files continue where they were.

        Raises:
            HostError: it breaks again and again, and nothing arrives; or the line to the run's machine broke.
        """
        asked |= {key: listed[key] for key in ("files", "times", "attempt")}
        sizes = {one.digest: one.size for one in items_of(listed)}
        tries, arrived = TRIES, -1
        while True:
            try:
                here = self._target.ask("lacks", asked)
                ahead, begun = here["now"] - self._source.ask("clock", {})["now"], here["begun"]
                asked["ahead"] = ahead if abs(ahead) > SAME_TIME_SECONDS else 0.0
                left = sum(sizes[one] - begun.get(one, 0) for one in here["lacking"])
                there = sum(sizes.values()) - left
                tries, arrived = TRIES if there > arrived else tries - 1, max(there, arrived)
                self._meter.begin("its files are sent", left + sum(begun.values()), sum(begun.values()))
                fields = {"run": asked["run"], "lacking": here["lacking"], "begun": begun}
                self._relay("files", fields, "settle", asked)
            except HostError as error:
                if error.host != self._target.host or not tries:
                    raise
                self._meter.begin(f"the connection to {error.host} was lost, and is opened again")
                self._target = opened_again(self._target, self._opened_if_wanted, self._pause)
                self._target.cancel_by(self._wish.require)
                # The far end may not have noticed yet that the line ended.
                asked["patience"] = SILENT_SECONDS
            else:
                return

    def _opened_if_wanted(self) -> Place:
        self._wish.require()
        return self._open_target()

    def _leave(self, planned: MovePlan, move: Move) -> None:
        """Decide; if the line breaks meanwhile, ask what was decided."""
        try:
            self._source.ask("leave", {"run": planned.run, "move": move._asdict()})
        except OperationError as error:
            if not isinstance(error, HostError) or not self._has_left(planned.run, move.token):
                raise self._kept(planned, error) from error

    def _send_code(self, planned: MovePlan) -> str:
        self._meter.begin("its code is sent", planned.code_bytes)
        told = self._relay(
            "source",
            {"run": planned.run, "to": self._names[1], "lacking": planned.code["lacking"]},
            "stow",
            planned.survey["code"],
        )
        return str(told["folder"])

    def _relay(self, what: str, fields: Mapping[str, Any], to: str, told: Mapping[str, Any]) -> dict[str, Any]:
        """Pass files straight from one machine to the other."""
        answer: dict[str, Any] = {}

        def take(reads: BinaryIO) -> None:
            def hand(out: BinaryIO) -> None:
                shutil.copyfileobj(reads, self._meter.sink(out, self._wish), _CHUNK_BYTES)
                self._meter.all_passed()

            answer.update(self._target.ask(to, told, send=hand))

        self._source.ask(what, fields, receive=take)
        return answer

    def _has_left(self, run: str, token: str) -> bool:
        """True if the decision was written before the line to the run's machine broke.

        Its far process may hold on to the run, and to our request, until it notices that the line ended.
        """
        deadline = time.monotonic() + LET_GO_SECONDS
        self._source = self._again(self._source, self._open_source, run)
        while time.monotonic() < deadline:
            try:
                moved = self._source.ask("survey", {"run": run}).get("moved")
                return moved is not None and moved["token"] == token
            except HostError:
                self._source = self._again(self._source, self._open_source, run)
            except OperationError as error:
                if error.field != "held":
                    return False
            time.sleep(self._pause)
        raise OperationError(
            f"whether {run} was handed over is not known: its machine does not answer",
            f"`mpstui move {run} --to {self._names[1]}` finishes it",
        )

    def _kept(self, planned: MovePlan, error: ReportedError, *, is_leaving: bool = True) -> OperationError:
        """Leave the run where it was; return the error to be raised."""
        told, goes_on = f"{planned.run} was not moved: {error.sentence}", "; it continues where it was" * planned.active
        kind = Cancelled if isinstance(error, Cancelled) else OperationError
        later = ", and continues there as soon as it has ended" * (planned.active and is_leaving)
        self._meter.begin(f"it stays where it was{later}", can_cancel=False)
        self._source.cancel_by(_nobody)
        self._target.cancel_by(_nobody)
        with suppress(ReportedError):  # otherwise it is dropped there in time
            self._target.ask("forget", {"run": planned.run})
        try:
            self._source.ask("stay", {"run": planned.run})
            return kind(told + goes_on, error.hint)
        except HostError:  # its machine keeps it anyway
            later = goes_on and goes_on + ", as soon as that machine sees the connection end" * is_leaving
            return kind(told + later, error.hint)
        except OperationError as worse:
            return kind(f"{told}; it has ended where it was ({worse.sentence})", "`mpstui restart` continues it")

    def _accept(self, run: str, token: str) -> dict[str, Any]:
        """After the decision: repeat until the other machine has said that it took the run over."""
        for _ in range(TRIES):
            try:
                return self._target.ask("accept", {"run": run, "token": token})
            except HostError as error:
                broken = error
                self._target = self._again(self._target, self._open_target, run)
        raise _unfinished(broken, run, self._names[1]) from broken

    def _again(self, broken: Place, open_line: Callable[[], Place], run: str) -> Place:
        try:
            return opened_again(broken, open_line, self._pause)
        except HostError as error:
            raise _unfinished(error, run, self._names[1]) from error


def _nobody() -> None:
    """Cancel nothing."""


def _unfinished(error: HostError, run: str, to: str) -> OperationError:
    return OperationError(
        f"{error.sentence}; the move of {run} is not finished", f"`mpstui move {run} --to {to}` finishes it"
    )
