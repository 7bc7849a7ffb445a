"""Report a training's progress in one line: ``report(loss=loss, step=step, steps=total)``.

This file stands alone: standard library only, Python 3.9+, nothing else of mpstui. It may be copied into any program
under any name. Outside a run that mpstui started it does nothing, and it never ends or holds up a training.
"""

from __future__ import annotations

import _thread
import atexit
import os
import sys
import time

TYPE_CHECKING = False  # typing takes longer to import than all the rest
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

VERSION = "1.1"
BEAT_SECONDS, POLL_SECONDS, SAVING_SECONDS, RETRY_SECONDS = 1.0, 0.25, 600.0, 10.0
MOST_WAITING_LINES, MOST_SETTINGS, MOST_DEPTH, LONGEST_SETTING, LONGEST_TEXT = 10_000, 10_000, 16, 1000, 10_000
WRITING_SHARE, MOST_CREDIT_SECONDS = 0.02, 0.01
"""At most this share of the time is spent writing; lines beyond that wait for a later report."""
LEAST_PATIENCE_SECONDS, FIRST_PATIENCE_SECONDS, PATIENCE_PAUSES = 60.0, 600.0, 10
MOST_IMAGES, MOST_IMAGE_NAMES, MOST_IMAGE_BYTES, MOST_BYTES_OF_IMAGES = 100, 20, 4 << 20, 100 << 20
"""Limits: images per name, names, bytes of one image and of all; with too many of them, older images are thinned."""
IMAGE_SECONDS, MOST_IMAGE_SIDE = 1.0, 768
"""The least time between two images of a name, and the most pixels of an array to keep in each direction."""
_COUNTS = frozenset(("step", "steps", "epoch", "epochs", "epoch_step", "epoch_steps"))
_BEAT_VALUES = ("loss", "lr", "samples_per_second", "steps_per_second", "batch_size")
_OTHER_NAMES = {"learning_rate": "lr", "total_steps": "steps", "max_steps": "steps", "global_step": "step"}
_RESERVED = frozenset(("time", "attempt", "rank", "schema", "nonfinite", "done", "first_epoch", "printed_step"))
_PHASES = {"train": "train", "eval": "eval", "val": "eval", "test": "eval", "sav": "save", "checkpoint": "save"}
_PHASES.update({"compil": "compile", "setup": "setup", "done": "done"})  # by how a word for it begins
_UNSAFE = str.maketrans({**{chr(code): " " for code in range(32)}, '"': "'", "\\": "/"})
_OF_LOSSES = ("loss_sum", "backward_passes_per_step")
_OF_OTHER_COUNTS = ("steps", "epoch_step", "epoch_steps", "steps_per_second", "step_from", "training")
_SECRET_PARTS = ("secret", "passw", "credential", "private_key", "api_key", "apikey", "access_key")
_SECRET_ENDS = ("auth_token", "access_token", "api_token", "hub_token", "hf_token", "bearer", "jwt")
_SECRET_STARTS = ("sk-", "hf_", "ghp_", "github_pat_", "AKIA", "xox")
_LARGEST = 1 << 63


class Report:
    """Reports this program's progress to the run that started it; ``report`` is this process's instance.

    Safe to call from any thread. The process that reports first speaks for its rank; forks of it are silent.
    """

    version = VERSION

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        self._silent = False
        self._run: _Run | None = None
        self._beside: tuple[dict[str, Any], Callable[[], int | None] | None] = {}, None
        """The agent's newest heartbeat and its step counter, kept even before the first report."""
        self._lock = _thread.RLock()
        os.register_at_fork(after_in_child=self._forked)

    def __call__(self, values: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        """Report numbers: counters (``step``, ``steps``, ``epoch``, ``epochs``), ``loss``, ``lr`` and any metric.

        Counters hold until reported again; a total of -1 is unknown. ``step`` counts completed steps, ``epoch`` is
        the one being trained, from 1 (or from 0, if that is the first one reported). Numbers may be numpy's or torch's;
        one on a device is read back at most once a second. NaN and infinity are kept as such.

        Args:
            values: metrics whose names are not Python identifiers, as in ``report({"val/acc": 0.9}, step=step)``.
        """
        try:
            run = self._run
            if self._silent or (run is None and (run := self._open()) is None):
                return
            said, usual, now = named if values is None else {**values, **named}, run.usual, time.monotonic()
            if (
                now < usual.due
                and (*said, *map(type, said.values())) == usual.shape
                and (not usual.same or usual.same.items() <= said.items())
            ):
                if now >= run.stamp_until:
                    run.renew_stamp(now)
                usual.note((run.stamp, *said.values()))
                if usual is not run.usual:  # another thread has just replaced it
                    with self._lock:
                        run.make_lines(usual)
            else:
                with self._lock:
                    run.tell(said, now)
        except Exception as error:  # noqa: BLE001 - the training matters more than any report about it
            self._failed(error)

    def phase(self, name: str, *, expect_seconds: float | None = None) -> _Phase:
        """Report what the program does from now on: "setup", "training", "evaluating", "saving" or words of your own.

        Silence for ``expect_seconds`` is then no cause for alarm. The phase ends with the next higher step, or with the
        ``with`` block around it.
        """
        before = self._run.doing if self._run is not None else ("", None)
        self._guarded(_Run.turn_to, name, expect_seconds)
        return _Phase(self, before)

    def checkpoint(self, path: str | os.PathLike[str], *, step: int | None = None, best: bool = False) -> None:
        """Report a complete checkpoint to resume from; ``step`` defaults to the last one reported."""
        self._guarded(_Run.saved, path, step, best)

    def config(self, values: Any = None, /, **named: Any) -> None:
        """Report the training's settings, which are shown with the run and compared between runs. Calls add up.

        ``values`` is a mapping or an argparse namespace. What its name marks as secret (a token, a key) is not written.
        """
        self._guarded(_Run.configured, values, named)

    def text(self, text: str, *, name: str = "", step: int | None = None) -> None:
        """Add a sentence to the run's events, or keep text a model wrote: ``report.text(sample, name="sample")``."""
        self._guarded(_Run.note, text, name, step)

    def image(self, name: str, image: Any, *, step: int | None = None) -> None:
        """Keep an image with the run: at most one a second per name, and 100 per name in all, older ones thinned out.

        Args:
            image: a path to a PNG or JPEG or its bytes, an object that can save itself (PIL, matplotlib), or an array
                or tensor of shape H x W, H x W x C or C x H x W, with integers from 0 to 255 or floats from 0 to 1.
        """
        self._guarded(_Run.pictured, str(name), image, step)

    def requested(self, action: str) -> bool:
        """True if somebody has asked for "save", "evaluate", "clear_cache" or "stop" since the last call; cheap.

        Calling this promises to do it, see :meth:`takes`. "stop" stays true: save, and end. :meth:`checkpoint` answers
        "save", this call "evaluate", :meth:`answer` the others. All ranks of one machine see it at the same step.
        """
        return bool(self._guarded(_Run.requested, action))

    def takes(self, *actions: str) -> None:
        """Promise, before the first step, to check for these requests with :meth:`requested`.

        With "stop", from the main thread, the first SIGTERM or SIGINT means to save and end.
        """
        self._guarded(_Run.takes, actions)

    def refuses(self, action: str, why: str) -> None:
        """Refuse requests for ``action``, with ``why``, at any :meth:`requested`, until :meth:`takes` names it."""
        self._guarded(_Run.refuses, action, why)

    def leaves(self, *, forgets: bool = False) -> None:
        """Take back what :meth:`takes` promised, and with ``forgets`` all reports: the agent reports instead."""
        if not self._silent and self._run is not None:
            self._guarded(_Run.leaves, forgets)

    def answer(self, action: str, text: str, *, ok: bool = True, **memory: int | None) -> None:
        """Answer a request that :meth:`requested` returned; ``memory`` is ``before``, ``after``, ``freed`` in bytes."""
        if not self._silent and self._run is not None:
            self._guarded(_Run.answer, action, text, ok, memory)

    @property
    def is_on(self) -> bool:
        """True if there is a run to report to: to skip computing what would only be reported."""
        return not self._silent and (self._run or self._open()) is not None

    def _open(self) -> _Run | None:
        """Find the run, at the first report."""
        with self._lock:
            if self._run is None and not self._silent:
                folder, loads = self._environ.get("MPSTUI_RUN_DIR"), sys.modules.get("torch.utils.data._utils.worker")
                self._silent = not folder or getattr(loads, "_worker_info", None) is not None  # a data loader's worker
                if folder and not self._silent:
                    try:
                        self._run = _Run(folder, self._environ, self._lock)
                        self._run.beside, self._run.count_beside = self._beside
                    except Exception:  # noqa: BLE001 - the training matters more than any report about it
                        self._silent = True
                    else:
                        _at_end(self._end)
            return None if self._silent else self._run

    def _end(self) -> None:
        if self._run is not None and not self._silent:
            self._guarded(_Run.end)

    def _guarded(self, method: Callable[..., Any], *args: Any) -> Any:
        try:
            run = None if self._silent else self._run or self._open()
            if run is not None:
                with self._lock:
                    run.catch_up()
                    return method(run, *args)
        except Exception as error:  # noqa: BLE001 - see above
            self._failed(error)
        return None

    def _failed(self, error: Exception) -> None:
        """Leave out a report with values of the wrong type; after any other error, be silent."""
        self._silent = not isinstance(error, TypeError)
        if self._run is not None:
            with self._lock:
                self._run.failed(error)

    def _forked(self) -> None:
        """In a fork: be silent, unless the parent has not reported anything yet."""
        spoken = self._run is not None and self._run.speaks
        self._silent, self._run, self._lock = self._silent or spoken, None, _thread.RLock()

    def joins(self, beat: dict[str, Any], count: Callable[[], int | None]) -> bool:
        """For the agent in the same process: merge its heartbeat into ours; False if it must write its own.

        Args:
            count: returns how many optimizer steps it has counted so far.
        """
        run, self._beside = self._run, (beat, count)
        if run is None or self._silent or beat.get("rank", 0) != run.rank:
            return False
        run.beside, run.count_beside = beat, count
        if run.forgets:
            self._guarded(_Run.retire)
            run.counts, run.values, run.doing, run.waited, run.forgets = {}, {}, ("", None), True, False
        if not run.speaks:
            return False
        self._guarded(_Run.beat)
        return not self._silent

    def without_reported(self, point: dict[str, Any]) -> dict[str, Any] | None:
        """For the agent: return the part of its point that the program does not report itself; None if nothing."""
        run = self._run
        if run is None or self._silent or not run.speaks:
            return point
        self._guarded(_Run.catch_up)
        is_ahead = run.counts.get("step", point["step"] - 1) == point["step"] - 1
        if is_ahead and not run.values and not run.waited:
            run.waited = True
            return None  # it may report this very step in a moment
        known = {*run.values, *(_OF_LOSSES if "loss" in run.values else ())}
        kept = {name: value for name, value in point.items() if name not in known}
        step, count = run.counts.get("step", 0), run.count_beside() if run.count_beside is not None else None
        counted = {name: value for name, value in run.counts_now(point).items() if name in ("step", "epoch")}
        if count is not None and abs(count - step) <= 1 and point["step"] < step:
            counted = {}  # both count alike, and the point is of an earlier step, as a late TensorBoard value is
        counted |= {"step": point["step"]} if is_ahead else {}  # the agent sees a step that is not reported yet
        return {**kept, **counted} if kept.keys() - {"time", "attempt", "step", "epoch"} else None

    def counted(self) -> tuple[int, int]:
        """For a callback: return the optimizer steps that the agent counted, and those from before this process."""
        beat, count = self._beside
        return (count() if count is not None else None) or 0, beat.get("begun_step", 0)

    def has_saved(self, path: str, *, is_told: bool = False) -> bool:
        """For the agent: True if the program has reported this checkpoint; ``is_told`` marks a path as reported."""
        if is_told and self._run is not None:
            self._run.checkpoints.add(os.path.abspath(path))
        return self._run is not None and path in self._run.checkpoints

    def answers(self, action: str) -> bool:
        """For the agent: True if the program carries out such requests itself."""
        return self._run is not None and not self._silent and action in self._run.answers


class _Phase:
    """Returned by :meth:`Report.phase`: at the end of a ``with`` block, the previous phase is back."""

    def __init__(self, report: Report, before: tuple[str, float | None]) -> None:
        self._report, self._before = report, before

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        self._report.phase(self._before[0], expect_seconds=self._before[1])


class _Usual:
    """Calls with the same names, so frequent that their lines wait: they are noted now and turned into lines together.

    This takes 1.9 us a call, against 2.8 with a line made at once (three numbers; :mod:`tests.bench.reporting`).
    """

    def __init__(self, shape: tuple[Any, ...] = (), known: Sequence[str] = ()) -> None:
        self.shape, self.known = shape, known  # names and types as reported; names as written
        self.same: dict[str, Any] = {}  # counters repeated in every call, with the values they had
        self.noted: list[Any] = []  # for each call, a stamp and its numbers
        self.note, self.begin = self.noted.extend, ""
        self.due = 0.0  # until then, calls like this may wait

    def lines(self, noted: list[Any]) -> str:
        """Turn noted calls into lines, consuming them; a number that is the same in all is formatted once."""
        form, at, width, calls = f"%s{self.begin}", 1, len(self.known) + 1, len(noted) // (len(self.known) + 1)
        for name in self.known:
            is_told, column = name not in ("steps", "epochs"), noted[at::width]
            changes = is_told and not (column[0] and column.count(column[0]) == calls)  # 0.0 equals -0.0
            form += f', "{name.replace("%", "%%")}": {"%s" if changes else repr(noted[at])}' if is_told else ""
            at += changes
            if not changes:
                del noted[at::width]
                width -= 1
        return f"{form}}}\n" * calls % tuple(noted)


class _Run:
    """Writes one process's share of the files of one attempt."""

    def __init__(self, folder: str, environ: Mapping[str, str], lock: _thread.RLock) -> None:
        attempt, (self.rank, self._world) = environ.get("MPSTUI_ATTEMPT", "1"), _rank(environ)
        self.attempt = int(attempt) if attempt.isdigit() else 1
        self.folder, self._lock, self._attempt = folder, lock, f', "attempt": {self.attempt}'
        self.speaks = False  # it has reported something, and no other process speaks for this rank
        self.doing: tuple[str, float | None] = ("", None)  # the phase, and how many seconds of silence it may bring
        self.counts: dict[str, Any] = {}
        self.values: dict[str, float] = {}
        self.beside: dict[str, Any] = {}  # the agent's newest heartbeat, if it is in this process too
        self.count_beside: Callable[[], int | None] | None = None
        self.forgets = self.waited = self.stop_asked = False  # see Report.joins() and without_reported(); requested()
        # The steps, and the epochs, that are reported are those that the agent counts.
        self._counted_alike, self._epochs_alike, self._compare_at = False, False, 0.0
        self._compared_epoch: float | None = None
        self._facts: dict[str, Any] = {}
        self.checkpoints, self._looked_at, self._refused = set[str](), set[str](), set[str]()  # reported paths
        self._config: dict[str, Any] = {}
        self._read_at, self._image_at = dict[str, float](), dict[str, float]()  # earliest time for a name's next one
        self._images: dict[str, int] | None = None  # bytes of each file, the oldest first; None: not listed yet
        self._unread: dict[str, tuple[Any, int]] = {}  # numbers on a device, and the thread that may read them
        self._names, self._agreed = dict[str, str](), dict[str, str]()
        self.usual = _Usual()
        self._shape: tuple[tuple[Any, ...], str] | None = None
        self._claim: int | None = None
        self._lines, self._events = _Lines(self.path("metrics.jsonl")), _Lines(self.path("events.jsonl"))
        self.answers: list[str] = []  # requests that the program carries out itself
        self._asked, self._taken = dict[str, list[str]](), dict[str, list[str]]()
        self._refusals: dict[str, str] = {}  # requests that cannot be carried out, and why
        self._seq, self._seen_at, self._look_at, self._place, self.stamp, self.stamp_until = 0, 0, 0.0, "", "", 0.0
        self._give_signals_back: Callable[[], None] = lambda: None
        self._beat_at = self._retry_at = self._pause = 0.0
        self._told_at, self._boot = float("inf"), _text_of("/proc/sys/kernel/random/boot_id").strip() or None
        os.makedirs(self.path("attempts", str(self.attempt)), mode=0o700, exist_ok=True)

    def path(self, *names: str) -> str:
        """Return the path of a file in the run directory."""
        return os.path.join(self.folder, *names)

    def tell(self, said: Mapping[str, Any], now: float) -> None:
        """See :meth:`Report.__call__`."""
        if not self.speaks and not self._begin():
            return
        begun = now
        if self.usual.noted:
            self.catch_up()
            begun = time.monotonic()  # making many lines does not count as time spent writing
        if now >= self.stamp_until:
            self.renew_stamp(now)
        line = self._line(said, now, self.stamp)
        if line:
            self._lines.add(line, begun)
        if self.count_beside is not None and said.get("step" if "step" in self.counts else "epoch") is not None:
            is_new = "epoch" in said and self.counts.get("epoch") != self._compared_epoch
            if is_new or now >= self._compare_at:
                self._compare_at = now + BEAT_SECONDS
                self._compare(self.count_beside() or 0, by_epoch="epoch" in said)
        if now >= self._beat_at:
            self.beat()
        if now < self._lines.write_at:
            self._expect(said)
            self.usual.due = min(self._lines.write_at, max(self._beat_at, self._retry_at))

    def _line(self, said: Mapping[str, Any], now: float, stamp: str) -> str:
        """Note the numbers and return their line, empty if there is nothing to report."""
        text, is_told = "", False
        for name, value in said.items():
            if name not in self.counts or value != self.counts[name]:
                more = self._part(name, value, now)
                text, is_told = text + (more or ""), is_told or more is not None
        step = f', "step": {self.counts["step"]}' if "step" in self.counts else ""
        return f"{stamp}{step}{self._place}{text}}}\n" if is_told and not self.rank else ""

    def _expect(self, said: Mapping[str, Any]) -> None:
        """Expect more calls like this one, of plain numbers with a step, if the one before was like it too."""
        shape = (*said, *map(type, said.values()))
        before, self._shape = self._shape, (shape, self._place)
        if self._shape != before or shape == self.usual.shape or self.doing[0]:
            return
        known = [self._names.get(name, "") for name in said]
        kinds = enumerate(shape[len(known) :])
        plain = [kind is int or (kind is float and known[at] not in _COUNTS) for at, kind in kinds]
        plain += [self.counts.get(name, -1) >= 0 for name in _COUNTS.intersection(known)]
        if not all(known) or not all(plain) or "step" not in known or _COUNTS.issuperset(known):
            return
        self.retire()
        self.usual = usual = _Usual(shape, known)
        more = [(name, value) for name, value in self.counts.items() if name not in (*known, "steps", "epochs")]
        usual.begin = "".join([f', "{name}": {value!r}' for name, value in more if value >= 0])
        counts = [name for name in said if self._names[name] in _COUNTS and self._names[name] != "step"]
        usual.same = {name: said[name] for name in counts}

    def make_lines(self, usual: _Usual) -> None:
        """Turn noted calls into lines; counters and values become those of the last call."""
        noted, width = usual.noted[:], len(usual.known) + 1
        del usual.noted[: len(noted)]  # no more: another thread may have added some
        if not noted:
            return
        numbers = noted[:]
        del numbers[::width]
        if -_LARGEST < sum(numbers) < _LARGEST:
            for at, name in enumerate(usual.known, start=1 - width):
                (self.counts if name in _COUNTS else self.values)[name] = noted[at]
            self._lines.waiting.append(usual.lines(noted))
            return
        for at in range(0, len(noted), width):  # some number is not finite, or very large
            said = {usual.shape[place - 1]: noted[at + place] for place in range(1, width)}
            self._lines.waiting.append(self._line(said, self._told_at, noted[at]))

    def catch_up(self) -> None:
        """Make lines of noted calls, before anything reads or changes what was reported."""
        self.make_lines(self.usual)
        self.usual.due = 0.0

    def retire(self) -> None:
        """Stop expecting calls of the usual shape."""
        usual, self.usual = self.usual, _Usual()
        self.make_lines(usual)

    def renew_stamp(self, now: float) -> None:
        """Renew the time that lines begin with; it is reused for 0.1 ms, which saves 0.2 us per line in a burst."""
        if now - self._told_at > self._pause:
            self._pause = now - self._told_at
        self._told_at, self.stamp_until = now, now + 1e-4
        self.stamp = f'{{"time": {time.time():.4f}{self._attempt}'

    def _part(self, name: str, value: Any, now: float) -> str | None:
        """Note any number and return its part of the line; None if there is nothing to report."""
        if type(value) is not float and (type(value) is not int or not -_LARGEST < value < _LARGEST):
            value = self._number(name, value, now)
            if value is None:
                return None
        name = self._names.get(name) or self._named(name)
        if name in _COUNTS:
            self._count(name, value)
            return ""
        if not name:
            return None
        self.values[name] = value
        return f', "{name}": {value!r}' if value - value == 0 else f', "{name}": null'

    def _compare(self, counted: int, *, by_epoch: bool) -> None:
        """Note whether the agent counts the same, give or take a step: some programs report one only at its end."""
        self._counted_alike = abs(counted - self.counts.get("step", counted)) <= 1  # without a step, the agent's counts
        if by_epoch:
            self._compared_epoch = self.counts.get("epoch")
            self._epochs_alike = self._epoch_beside(self.beside) == self.counts.get("epoch")

    def _epoch_beside(self, beside: Mapping[str, Any]) -> float | None:
        """Return the agent's epoch, as this program numbers it."""
        epoch: float | None = beside.get("epoch")
        return None if epoch is None else epoch - 1 + self.counts.get("first_epoch", 1)

    def counts_now(self, beside: Mapping[str, Any]) -> dict[str, Any]:
        """Return the counters as last reported or, if the agent counts the same, as far as it has counted on."""
        step = (self._counted_alike and beside.get("step")) or 0
        epoch = (self._counted_alike and self._epochs_alike and self._epoch_beside(beside)) or 0
        newer = {name: one for name, one in (("step", step), ("epoch", epoch)) if one > self.counts.get(name, one)}
        return {**self.counts, **newer} if newer else self.counts

    def _step_or(self, said: int | None) -> int | None:
        """Return the step that was given, else the newest one, even if only the agent has counted it yet."""
        now = {"step": self.count_beside() if said is None and self.count_beside is not None else None}
        return self.counts_now(now).get("step") if said is None else int(said)

    def turn_to(self, name: str, expect_seconds: float | None) -> None:
        """See :meth:`Report.phase`."""
        if self.speaks or self._begin():
            self.read_rest()
            self.retire()
            self.doing = (name, expect_seconds) if not self.stop_asked else ("saving", SAVING_SECONDS)
            self._told_at = float("inf")  # a long evaluation does not count as a pause between reports
            self.beat()

    def saved(self, path: str | os.PathLike[str], step: int | None, best: bool) -> None:
        """See :meth:`Report.checkpoint`."""
        path, step = os.path.abspath(os.fspath(path)), self._step_or(step)
        self.checkpoints.add(path)
        self._facts["checkpoint"] = {"path": path, **({} if step is None else {"step": step}), "time": time.time()}
        self.event("checkpoint", f"saved {path}", path=path, step=step, best=best or None)
        self.answer("save", f"saved {path}", True, {})
        if self.speaks or self._begin():
            self.beat()

    def configured(self, values: Any, named: Mapping[str, Any]) -> None:
        """See :meth:`Report.config`."""
        if self.rank:
            return
        values = {} if values is None else values if hasattr(values, "items") else vars(values)
        before, room = dict(self._config), iter(range(MOST_SETTINGS - len(self._config)))
        self._config.update(_open_values({**dict(values.items()), **named}, room))
        if next(room, None) is None:
            self.refuse("report.config(...)", f"keeps {MOST_SETTINGS:,} settings: further ones are left out")
        if self._config != before:
            self._write(self.path("attempts", str(self.attempt), "config.json"), self._config)

    def note(self, text: object, name: str, step: int | None) -> None:
        """See :meth:`Report.text`."""
        self.event("text" if name else "note", str(text)[:LONGEST_TEXT], name=name or None, step=self._step_or(step))

    def pictured(self, name: str, image: Any, step: int | None) -> None:
        """See :meth:`Report.image`."""
        began, names = time.monotonic(), self._image_at
        if self.rank or began < names.get(name, 0.0) or not (self.speaks or self._begin()):
            return
        if name not in names and len(names) >= MOST_IMAGE_NAMES:
            self.refuse("report.image()", f"keeps images of {MOST_IMAGE_NAMES} names: further ones are left out")
            return
        try:
            self._keep(name, _picture(image), self._step_or(step))
        except Exception as error:  # noqa: BLE001 - anything may have been passed, and the disk may be full
            self.refuse(f"report.image({name[:40]!r})", f"is left out: {error}")
        # Each name gets its share of the time allowed for writing.
        names[name] = 0.0
        names[name] = began + max(IMAGE_SECONDS, len(names) * (time.monotonic() - began) / WRITING_SHARE)

    def _keep(self, name: str, data: bytes, step: int | None) -> None:
        """Write an image; if there are too many, drop every second one, but not the first or the newest."""
        from urllib.parse import quote

        folder, of = self.path("images"), quote(name[:100], safe="")[:150]
        if self._images is None:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            there = [one for one in os.scandir(folder) if one.name[:1].isdigit()]
            self._images = {one.name: one.stat().st_size for one in sorted(there, key=lambda one: one.name)}
        kept, kinds = self._images, dict[str, list[str]]()
        number, ending = 1 + int(max(kept, default="0").partition("-")[0]), "png" if data.startswith(_PNG) else "jpg"
        file = f"{number:09d}-{self.attempt}-{'x' if step is None else step}-{of}.{ending}"
        if not self._write(os.path.join(folder, file), data):
            raise OSError("it could not be written")
        kept[file] = len(data)
        for one in kept:
            kinds.setdefault(one.split("-", 3)[-1][:-4], []).append(one)
        full = sum(kept.values()) > MOST_BYTES_OF_IMAGES
        for each in kinds.values():
            for one in each[1:-1:2] if full or len(each) > MOST_IMAGES else ():
                del kept[one]
                os.unlink(os.path.join(folder, one))

    def takes(self, actions: tuple[str, ...]) -> None:
        """See :meth:`Report.takes`."""
        if self._world > 1 and os.environ.get("LOCAL_WORLD_SIZE", str(self._world)) != str(self._world):
            return  # machines that cannot agree on a step
        for action in actions:
            self._refusals.pop(action, None)
        for action in [action for action in actions if action not in self.answers]:
            self.answers.append(action)
            self._beat_at = 0.0  # so the next number writes a heartbeat that tells it
            if action == "stop":
                self._listen_for_stop()

    def refuses(self, action: str, why: str) -> None:
        self.takes((action,))
        self._refusals[action] = why

    def leaves(self, forgets: bool) -> None:
        """See :meth:`Report.leaves`."""
        self.answers.clear()
        self._give_signals_back()
        self.forgets = forgets

    def requested(self, action: str) -> bool:
        """See :meth:`Report.requested`."""
        self.takes((action,) if action not in self.answers else ())
        if action not in self.answers:
            return False
        now = time.monotonic()
        if now >= self._look_at and self.rank == 0:
            self._look_at = now + POLL_SECONDS
            self._look()
            for refused, why in self._refusals.items():
                self._taken[refused] = self._asked.pop(refused, [])
                self.answer(refused, why, False, {})
        asked = self._asked.pop(action, [])
        self._taken.setdefault(action, []).extend(asked)
        wanted = bool(asked) if action != "stop" else self.stop_asked
        wanted = wanted if self._world == 1 else self._agree(action, wanted)
        if wanted and action == "evaluate":
            step = self._step_or(None)
            self.answer(action, "it evaluates" + ("" if step is None else f" after step {step}"), True, {})
        if wanted and action == "stop" and (self.doing[0] != "saving" or not self._beat_at):
            self.stop_asked = True
            self.turn_to("saving", SAVING_SECONDS)
        return wanted

    def answer(self, action: str, text: str, ok: bool, memory: Mapping[str, int | None]) -> None:
        """See :meth:`Report.answer`."""
        for number in self._taken.pop(action, ()):
            record = {"id": number, "ok": ok, "by": "trainer", "time": time.time(), "text": text, **memory}
            path = self.path("requests", f"{number}.ack.json")
            if not os.path.exists(path):  # only the first answer counts
                self._write(path, record)

    def _look(self) -> None:
        """Read new requests; costs one stat if there are none."""
        try:
            changed = os.stat(self.path("requests")).st_mtime_ns
            if changed == self._seen_at and time.time_ns() - changed > 2_000_000_000:
                return  # right after a change, look again: a coarse clock may hide another
            names = sorted(os.listdir(self.path("requests")))
        except OSError:
            return
        import json

        self._seen_at = changed
        for name in names:
            number = name[: -len(".json")]
            known = name in self._looked_at or name.endswith(".ack.json") or f"{number}.ack.json" in names
            if known or name.startswith(".") or not name.endswith(".json"):
                continue
            self._looked_at.add(name)
            try:
                with open(self.path("requests", name), "rb") as file:
                    found = json.loads(file.read(1 << 20))
                if found["attempt"] == self.attempt:
                    self._asked.setdefault(found["action"], []).append(number)
            except (OSError, ValueError, KeyError, TypeError):
                continue

    def _agree(self, action: str, wanted: bool) -> bool:
        """True if all ranks are to do it now: whichever hears of it first sets a step that none has reached."""
        path, step = self.path("attempts", str(self.attempt), f"{action}.at"), self.counts.get("step", 0)
        if wanted and (action != "stop" or not os.path.exists(path)):
            self._write(path, {"step": step + 2})
        text = _text_of(path)
        if not text or (text == self._agreed.get(action) and action != "stop"):
            return False
        due: bool = step >= int("".join([sign for sign in text if sign.isdigit()]))
        self._agreed.update({action: text} if due else {})
        return due

    def _listen_for_stop(self) -> None:
        """Let the first SIGTERM or SIGINT mean to save and end; a second one means what it did before."""
        import signal

        before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

        def give_back() -> None:
            for number, handler in before.items():
                signal.signal(number, handler)

        def stop(*_: object) -> None:
            self.stop_asked, self.doing = True, ("saving", SAVING_SECONDS)
            self._beat_at = self.usual.due = 0.0  # the next report writes a heartbeat that tells it
            give_back()

        self._give_signals_back = give_back
        try:
            for number, handler in before.items():
                if handler in (signal.SIG_DFL, signal.default_int_handler):
                    signal.signal(number, stop)
        except ValueError:  # not the main thread
            self.answers.remove("stop")

    def event(self, kind: str, text: str, **details: Any) -> None:
        """Append to the run's events, on rank 0 only."""
        if self.rank == 0:
            known = {name: value for name, value in details.items() if value is not None}
            record = {"time": time.time(), "attempt": self.attempt, "event": kind, "text": text, **known}
            self._events.add(_json(record).decode(), time.monotonic())

    def end(self) -> None:
        """At the end of the program, write the last numbers, and ``done`` unless an exception ended it."""
        self.read_rest()
        self._lines.flush()
        self._events.flush()
        if self.speaks and (not hasattr(sys, "last_value") or "ipykernel" in sys.modules):  # a cell's error may be past
            self.doing = "done", 0.0
            self.beat()

    def failed(self, error: Exception) -> None:
        """Note in the events, once, what is not reported: one call, or everything from now on."""
        what = "what one call says is left out" if isinstance(error, TypeError) else "is off"
        try:
            self.catch_up()
            self._lines.flush()
            self.refuse(f"report(): {what}, the training goes on", f"({type(error).__name__}: {error})")
        except Exception:  # noqa: BLE001 - there is nowhere left to report it
            self.speaks = False

    def beat(self) -> None:
        """Write the heartbeat: what the program reports takes precedence over what the agent sees."""
        now = time.monotonic()
        if now < self._retry_at:
            return
        self._beat_at, self._seq, self._pause = now + BEAT_SECONDS, self._seq + 1, 0.95 * self._pause
        said = self.values
        values = {name: value for name, value in said.items() if value - value == 0}
        told = {name: values.pop(name) for name in _BEAT_VALUES if name in values}
        beside, doing = dict(self.beside), self.doing[0]
        if "step" in self.counts and not self._counted_alike:
            beside = {name: value for name, value in beside.items() if name not in _OF_OTHER_COUNTS}
        if "loss" in said:
            beside.pop("loss_seen", None)
            beside.pop("loss", None)
            seen = beside.get("metrics", {}).items()  # without what the agent derives from its own loss
            beside["metrics"] = {name: value for name, value in seen if name not in _OF_LOSSES}
        odd = [name for name in beside.get("nonfinite", ()) if name not in said]
        odd += [name for name, value in said.items() if value - value != 0]
        patience = FIRST_PATIENCE_SECONDS if not self._pause else PATIENCE_PAUSES * self._pause
        patience = max(LEAST_PATIENCE_SECONDS, patience, beside.get("expect_next_in", 0.0))
        if doing or ("phase" not in beside and (told or self.counts)):  # other metrics do not mean that it trains
            beside["phase"] = (_phase_of(doing) or "setup") if doing else "train"
        record = {
            **beside,
            **{"schema": 1, "time": time.time(), "seq": max(self._seq, beside.get("seq", 0)), "monotonic": now},
            **{"run": os.path.basename(self.folder), "attempt": self.attempt, "pid": os.getpid()},
            **{"rank": self.rank, "world_size": self._world, "boot_id": beside.get("boot_id") or self._boot},
            **self.counts_now(self.beside),
            **told,
            **self._facts,
            **{"expect_next_in": patience if self.doing[1] is None else self.doing[1]},
            "metrics": {**beside.get("metrics", {}), **values},
            "answers": self.answers,
            "reported": [*self.counts, *said, *self._facts],
        }
        record.update({"doing": doing} if doing and not _phase_of(doing) else {}, **({"nonfinite": odd} if odd else {}))
        record = {name: one for name, one in record.items() if name not in _COUNTS or (one or 0) >= 0}  # -1: unknown
        name = f"heartbeat.rank{self.rank}.json" if self.rank else "heartbeat.json"
        if not self._write(self.path("attempts", str(self.attempt), name), record):
            self._retry_at = now + RETRY_SECONDS
        self._lines.flush()

    def read_rest(self) -> None:
        """Report numbers that are still on a device."""
        mine = {name: value for name, (value, thread) in self._unread.items() if thread == _thread.get_ident()}
        self._unread.clear()
        self._read_at.clear()
        if mine:
            self.tell(mine, time.monotonic())

    def _begin(self) -> bool:
        """True if this process speaks for its rank: the first one to report does, as long as it lives."""
        with self._lock:
            if self._claim is None:
                import fcntl

                lock = self.path("attempts", str(self.attempt), f"report{self.rank}.lock")
                try:
                    self._claim = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                    fcntl.flock(self._claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    self.speaks = True
                except OSError as error:  # also from a file system that has no locks, or is full
                    self.speaks = not isinstance(error, BlockingIOError)
            return self.speaks

    def _count(self, name: str, value: float) -> None:
        """Note a counter."""
        if value - value != 0 or (value < 0 and name in ("step", "epoch", "epoch_step")):
            return
        counts, before = self.counts, self.counts.get(name)
        counts[name] = int(value) if name not in ("epoch", "epochs") or value == int(value) else value
        if name == "step":
            if before is not None and value > before and self.doing[0] != "done" and not self.stop_asked:
                self.doing = "", None
            return
        self.retire()
        if name == "epoch" and before is None:
            earlier = _text_of(self.path("attempts", str(self.attempt - 1), "heartbeat.json"))
            counts.update({"first_epoch": 0} if value == 0 or '"first_epoch": 0' in earlier else {})
        told = [(name, value) for name, value in counts.items() if name not in ("step", "steps", "epochs")]
        self._place = "".join([f', "{name}": {value!r}' for name, value in told if value >= 0])
        if name in ("steps", "epochs") and value != before:
            self._beat_at = 0.0  # a new total is told at once

    def _named(self, name: object) -> str:
        """Return a metric's name as it is written in a line; empty if the name is reserved."""
        known = _OTHER_NAMES.get(str(name), str(name)).translate(_UNSAFE)
        if known in _RESERVED:
            self.refuse(f"report({known}=...)", "is left out: that name is taken, use another")
            return ""
        self._names[str(name)] = known
        return known

    def _number(self, name: str, value: Any, now: float) -> float | None:
        """Convert a number of numpy, torch or anything that float() takes; None if there is nothing to report."""
        if value is None:
            return None
        if name == "device":
            self._facts["device"] = {"type": str(value).partition(":")[0]}
            return None
        if getattr(value, "is_cpu", True) is False and name not in _COUNTS:
            if now < self._read_at.get(name, 0.0):
                self._unread[name] = value.detach(), _thread.get_ident()
                return None
            self._unread.pop(name, None)
            self._read_at[name] = now + BEAT_SECONDS
        try:
            value = value.item() if hasattr(value, "item") else value
            return value if type(value) is int and -_LARGEST < value < _LARGEST else float(value)
        except (TypeError, ValueError, RuntimeError, OverflowError):
            self.refuse(f"report({name}=...)", f"is left out: {type(value).__name__} is no number")
            return None

    def refuse(self, call: str, why: str) -> None:
        """Note in the events, once per call, what is ignored."""
        if call not in self._refused and len(self._refused) < 20:
            self._refused.add(call)
            self.event("note", f"{call} {why}")

    def _write(self, path: str, record: dict[str, Any] | bytes) -> bool:
        """Replace a file, all or nothing; False if it cannot be written now."""
        folder, name = os.path.split(path)
        temporary = os.path.join(folder, f".{name}.{os.getpid()}.tmp")
        try:
            with open(temporary, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
                file.write(record if isinstance(record, bytes) else _json(record))
            os.replace(temporary, path)
        except OSError:
            try:
                os.unlink(temporary)
            except OSError:
                return False
            return False
        return True


class _Lines:
    """Appends lines to a file, at once while that costs next to nothing; on a full disk they wait."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.waiting: list[str] = []  # items of one or more lines
        self.write_at = 0.0
        self._file = -1
        self._rest = b""  # what is left of lines that a full disk took only in part

    def add(self, line: str, now: float) -> None:
        """Append one line, or keep it until there is time for writing again."""
        self.waiting.append(line)
        if now > self.write_at:
            self.write_at = max(self.write_at, now - MOST_CREDIT_SECONDS / WRITING_SHARE)
            self.flush()
            self.write_at += (time.monotonic() - now) / WRITING_SHARE

    def flush(self) -> None:
        """Write the waiting lines."""
        lines = self.waiting[:]
        if not lines and not self._rest:
            return
        try:
            if self._file < 0:
                self._open()
            data = self._rest + "".join(lines).encode("utf-8", "replace")
            written = os.write(self._file, data)
            self._rest = data[written:]
            del self.waiting[: len(lines)]
        except OSError:
            self.waiting = ["\n".join("".join(lines).split("\n")[-MOST_WAITING_LINES - 1 :])]
            self.write_at = time.monotonic() + RETRY_SECONDS
            if self._file >= 0:  # the file may have been moved by then
                os.close(self._file)
                self._file = -1

    def _open(self) -> None:
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        size = os.fstat(self._file).st_size
        if size and not self._rest and os.pread(self._file, 1, size - 1) != b"\n":
            self._rest = b"\n"  # somebody left half a line


def _rank(environ: Mapping[str, str]) -> tuple[int, int]:
    """Return this process's rank and the world size."""
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()  # mp.spawn sets no variables
    words = environ.get("RANK", "0"), environ.get("WORLD_SIZE", "1")
    rank, world = (int(word) if word.isdigit() else 0 for word in words)
    return rank, max(1, world)


def _text_of(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except (OSError, ValueError):
        return ""


def _phase_of(doing: str) -> str:
    """Return the phase that the program's own word means; empty if none fits."""
    return next((phase for begin, phase in _PHASES.items() if doing.lower().startswith(begin)), "")


def _at_end(end: Callable[[], None]) -> None:
    """Call ``end`` at the end of this process, even if multiprocessing started it."""
    atexit.register(end)
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None and processes.parent_process() is not None:
        from multiprocessing.util import Finalize

        Finalize(None, end, exitpriority=10)


def _json(value: Any) -> bytes:
    import json

    return (json.dumps(value, default=str) + "\n").encode()


def _open_values(values: Any, room: Iterator[int], name: str = "", depth: int = 0) -> Any:
    """Convert values to JSON's types, as many as there is room for, without those that look like secrets."""
    word = name.lower().replace("-", "_")
    if values is None or isinstance(values, bool):
        return values
    if word.endswith(_SECRET_ENDS) or any(part in word for part in _SECRET_PARTS):
        return "(not written)"
    if isinstance(values, int) and -_LARGEST < values < _LARGEST:
        return values
    if isinstance(values, float):
        return values if values - values == 0 else str(values)
    if depth < MOST_DEPTH and hasattr(values, "items") and not isinstance(values, type):
        some = [(str(key), value) for key, value in values.items() if next(room, None) is not None]
        return {key: _open_values(value, room, key, depth + 1) for key, value in some}
    if depth < MOST_DEPTH and isinstance(values, (list, tuple, set, frozenset)):
        return [_open_values(value, room, name, depth + 1) for value in values if next(room, None) is not None]
    try:
        text = str(values)[:LONGEST_SETTING]
    except Exception:  # noqa: BLE001 - anything may be a setting
        return f"({type(values).__name__})"
    return "(not written)" if text.startswith(_SECRET_STARTS) else text


_PNG, _JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"


def _picture(image: Any) -> bytes:
    """Return the bytes of a PNG or JPEG of whatever :meth:`Report.image` takes."""
    if isinstance(image, (str, os.PathLike)):
        if not os.path.isfile(image):
            raise ValueError(f"{os.fspath(image)!r} is no file")
        with open(image, "rb") as file:
            data = file.read(MOST_IMAGE_BYTES + 1)
    elif isinstance(image, (bytes, bytearray)):
        data = bytes(image)
    elif hasattr(image, "save") or hasattr(image, "savefig"):
        import io

        into = io.BytesIO()
        (image.save if hasattr(image, "save") else image.savefig)(into, format="png")
        data = into.getvalue()
    else:
        data = _png(image)
    if not data.startswith((_PNG, _JPEG)):
        raise ValueError("it is neither PNG nor JPEG")
    if len(data) > MOST_IMAGE_BYTES:
        raise ValueError(f"it is larger than {MOST_IMAGE_BYTES >> 20} MiB")
    return data


def _png(pixels: Any) -> bytes:
    """Encode an array of numpy, torch and the like as PNG."""
    import struct
    import zlib

    if not hasattr(pixels, "shape"):
        raise ValueError(f"{type(pixels).__name__} is no image")
    pixels = pixels.detach().cpu() if hasattr(pixels, "detach") else pixels
    while len(pixels.shape) > 3 and pixels.shape[0] == 1:
        pixels = pixels[0]
    shape = tuple(pixels.shape)
    if len(shape) == 3 and shape[2] > 4:
        pixels = pixels.permute(1, 2, 0) if hasattr(pixels, "permute") else pixels.transpose(1, 2, 0)
    every = -(-max(pixels.shape[:2]) // MOST_IMAGE_SIDE)
    pixels = pixels[::every, ::every]
    height, width, channels = (*pixels.shape, 1)[:3]
    if len(shape) not in (2, 3) or not 1 <= channels <= 4 or not height * width:
        raise ValueError(f"its shape is {shape}")
    kind = str(pixels.dtype)
    if "uint8" not in kind:
        pixels = (pixels * 255 if "float" in kind or "bool" in kind else pixels).clip(0, 255)
    if hasattr(pixels, "byte"):  # torch may be there without numpy
        pixels = pixels.byte()
        raw = pixels.numpy().tobytes() if "numpy" in sys.modules else bytes(pixels.flatten().tolist())
    else:
        raw = memoryview(pixels.astype("uint8")).tobytes()
    lines = b"".join([b"\0" + raw[at : at + width * channels] for at in range(0, len(raw), width * channels)])
    head = struct.pack(">IIBBBBB", width, height, 8, (0, 4, 2, 6)[channels - 1], 0, 0, 0)
    parts = b"IHDR" + head, b"IDAT" + zlib.compress(lines, 3), b"IEND"
    chunks = [struct.pack(">I", len(part) - 4) + part + struct.pack(">I", zlib.crc32(part)) for part in parts]
    return _PNG + b"".join(chunks)


class _Older:
    """Wraps an older copy that was imported first and serves this one too: methods it lacks do nothing."""

    def __init__(self, first: Any) -> None:
        self._first = first

    def __call__(self, *values: Any, **named: Any) -> None:
        self._first(*values, **named)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._first, name, lambda *_, **named: None)


_MODULE = "_mpstui_report"  # where the agent, and other copies of this file, find the one imported first
_first: Any = getattr(sys.modules.setdefault(_MODULE, sys.modules[__name__]), "report", None) or Report()
_is_older = [*map(int, _first.version.split("."))] < [*map(int, VERSION.split("."))]
report: Report = _Older(_first) if _is_older else _first  # type: ignore[assignment]
