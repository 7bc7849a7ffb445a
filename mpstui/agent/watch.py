"""The agent: watches the training of a program that was never written for mpstui, from inside its process.

Tensors are touched on the training thread alone, since two threads on MPS end the process (pytorch#197805).
"""

from __future__ import annotations

import _thread
import gc
import os
import sys
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from ..wire.heartbeat import CheckpointNote, DeviceReading, MemoryReading
from ..wire.records import Request
from . import ranks, saving
from .awake import Awake
from .counting import Steps
from .losses import Losses
from .memory import device_memory
from .passes import Passes
from .reporter import BEAT_SECONDS, POLL_SECONDS, Reporter

_LEAST_PATIENCE_SECONDS = 60.0
_PATIENCE_STEPS = 50
_LONGEST_SAVE_SECONDS = 300.0
_LONGEST_COMPILATION_SECONDS = 1800.0
_BLIND_SECONDS = 20.0
"""How long backward passes go on without an optimizer step before that is said."""
_FEWEST_PASSES = _IDLE_BATCHES = 3
_EVALUATES_AFTER_SECONDS = 1.0
_SHIPPED_REPORTER = "mpstui.agent.reporter"


class Watch:
    """Counts optimizer steps, keeps the last loss, beats at most once a second, answers requests."""

    def __init__(
        self, torch: Any, environ: Mapping[str, str], *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.losses = Losses(torch)
        self.passes = Passes(torch)
        self.steps = Steps(lambda: saving.step_begun_from(environ))
        self.trainer: Callable[[], dict[str, Any]] | None = None
        """What a framework's own loop tells, which goes before what is seen from outside."""
        self._torch = torch
        self._environ = environ
        self._monotonic = monotonic
        self._loaded_at = monotonic()
        self._trains = False
        self._reporter: Reporter | None = None
        self._off = False
        self._pid = 0
        self._thread = 0
        self._claim: int | None = None
        self._awake: Awake | None = None
        self._writing = _thread.RLock()
        """Held by the one thread that reports: several may train, and one looks after long evaluations."""
        self._device = "cpu"
        self._captured: list[weakref.ref[Any]] = []
        self._replayed: weakref.WeakKeyDictionary[Any, list[weakref.ref[Any]]] = weakref.WeakKeyDictionary()
        """Optimizers whose steps are in a CUDA graph."""
        self._phase = "train"
        self._worked_at = self._first_backward = 0.0
        self._eval_at: float | None = None
        self._idle_batches = 0
        self._saved_at = self._next_beat = self._next_look = float("-inf")
        self._checkpoint: CheckpointNote | None = None
        self.saves_folder = False  # what is saved now is a part of a checkpoint
        self._newest_memory = MemoryReading()
        self._patience = _LEAST_PATIENCE_SECONDS
        self._beaten_step = self._pointed = 0
        self._beaten_at = 0.0
        self._was_away = False  # an evaluation or a save lies between the last beat of the training and the next
        self._speed: float | None = None

    def guarded(self, look: Callable[..., None]) -> Callable[..., None]:
        """The same, switched off for good at its first surprise: a guest must not break the house."""

        def guarded(*args: Any, **kwargs: Any) -> None:
            if not self._off:
                try:
                    look(*args, **kwargs)
                except Exception as error:  # noqa: BLE001 - see above
                    self._give_up(error)

        return guarded

    def before_backward(self, *args: Any, **kwargs: Any) -> None:
        """Before ``torch.autograd.backward``."""
        self.losses.before_backward(*args, **kwargs)
        self._worked()
        self._first_backward = self._first_backward or self._worked_at
        if not self.steps.seen and not self._is_capturing():
            self._go_on_without_steps()

    def after_step(self, optimizer: Any) -> None:
        """Runs behind every optimizer's step, on its thread."""
        if self._off:
            return
        try:
            self.losses.stepped()
            if self._is_capturing():  # nothing is computed yet, and to read a number would end the program
                self._captured.append(weakref.ref(optimizer))
            else:
                self._stepped(optimizer)
        except Exception as error:  # noqa: BLE001 - a guest must not break the house
            self._give_up(error)

    def after_capture(self, result: Any, graph: Any) -> None:
        """Behind ``CUDAGraph.capture_end``: the steps in it are made by each replay."""
        if self._captured:
            self._replayed[graph], self._captured = self._captured, []

    def after_replay(self, result: Any, graph: Any) -> None:
        """Behind ``CUDAGraph.replay``."""
        for optimizer in (ref() for ref in self._replayed.get(graph, ())):
            if optimizer is not None:
                self._stepped(optimizer)

    def _is_capturing(self) -> bool:
        """Whether the work goes into a CUDA graph, not to the device."""
        cuda = self._torch.cuda
        return bool(cuda.is_initialized() and cuda.is_current_stream_capturing())

    def _stepped(self, optimizer: Any) -> None:
        self.passes.stepped(self.losses.passes_per_step, self.steps.network(optimizer))
        self.steps.stepped(optimizer, self.passes.epoch_steps(self.losses.passes_per_step))
        self._worked()
        if not self._trains:
            groups = (one for group in optimizer.param_groups for one in group["params"])
            self._start(next((str(one.device.type) for one in groups), "cpu"))
        self._report()

    def _go_on_without_steps(self) -> None:
        """Backward passes alone: an optimizer of the program's own, or one whose step is compiled."""
        if not self._trains:
            if self.losses.backwards < _FEWEST_PASSES:
                return
            if self._is_blind() and self._worked_at - self._first_backward < _BLIND_SECONDS:
                return
            self._start(self.losses.device)
        self._report()

    def _is_blind(self) -> bool:
        return self.steps.count is None and self.trainer is None

    def _begin(self) -> None:
        if _SHIPPED_REPORTER in sys.modules:  # this program reports by itself
            self._off = True
            return
        self._pid, self._thread = os.getpid(), _thread.get_ident()
        told, self._claim = ranks.claimed(self._torch, self._environ)
        self._reporter = Reporter.from_environment({**self._environ, **told}, by="agent")
        self._reporter.memory, self._reporter.count = self._memory, lambda: self.steps.count
        self._reporter.listen_for_stacks()
        self._awake = Awake(self._stay_awake, BEAT_SECONDS)

    def _start(self, device: str) -> None:
        """The training goes: its next step may take as long as all before it, which was fetched and compiled."""
        with self._writing:
            if self._reporter is None:
                self._begin()
            if self._reporter is None or self._trains or self._pid != os.getpid():
                return
            self._trains, self._device, self._thread = True, device, _thread.get_ident()
            self._beaten_step, self._beaten_at = self.steps.before or 0, self._monotonic()
            self._patience = max(_LEAST_PATIENCE_SECONDS, 2 * (self._beaten_at - self._loaded_at))
            reading, step = DeviceReading(device, None, None), None if self._is_blind() else self._beaten_step
            self._reporter.beat("train", device=reading, expect_next_in=self._patience, step=step)
            if self._is_blind():
                text = "the agent is loaded, but saw no step of a torch optimizer: it counts none"
                self._reporter.event("note", text)
            else:
                self._reporter.event("first_step", "the agent saw the first optimizer step")

    def _report(self) -> None:
        if self._reporter is None:
            return
        if self._pid != os.getpid():  # a fork of a training: the parent keeps the heartbeat
            self._off = True
            return
        now = self._worked_at
        if now < min(self._next_beat, self._next_look) or not self._writing.acquire(False):
            return
        try:
            if now >= self._next_beat:
                self._next_beat = now + BEAT_SECONDS
                self._beat(now)
            if now >= self._next_look:
                self._next_look = now + POLL_SECONDS
                for request in self._reporter.requests():
                    self._answer(request)
        finally:
            self._writing.release()

    def _beat(self, now: float, *, last: bool = False) -> None:
        """Read the loss back (this waits for the device, hence once a second) and write beat and point."""
        assert self._reporter is not None
        told = self.trainer() if self.trainer is not None else {}
        step = self.steps.count if not told else told["step"]
        elapsed, done = now - self._beaten_at, (step or 0) - self._beaten_step
        speed = done / elapsed if done > 0 and elapsed > 0.1 else None
        self._beaten_at, self._beaten_step = now, step or 0
        if speed is not None:
            self._patience = max(_LEAST_PATIENCE_SECONDS, _PATIENCE_STEPS / speed)
        if speed is not None and self._phase == "train" and not self._was_away:
            self._speed = speed  # an evaluation is no slowness of the training
        self._was_away = False
        # What passes backward in the first step may be one of several losses: the second step tells.
        settled = (last or (step or 0) - (self.steps.before or 0) != 1) and "loss" not in told
        loss, further = self.losses.read() if settled else (None, {})
        passes = self.losses.passes_per_step
        metrics = {"backward_passes_per_step": float(passes), **further} if passes > 1 else further
        anew = self.steps.may_go_on or self._environ.get("MPSTUI_ATTEMPT", "1") != "1"
        point_step = told.pop("loss_step", step)
        facts = {
            "step_from": "process" if not told and anew and step is not None and not self.steps.before else None,
            "loss": loss,
            "loss_seen": "trainer" if told.get("loss") is not None else "backward",
            "steps_per_second": self._speed,
            "accumulate": passes if passes >= 1 and not further and settled else None,
            "checkpoint": self._checkpoint,
            **self.steps.facts(),
            **self.passes.facts(passes, self.steps.before, self.steps.epochs_before),
            **told,
            "step": step,
            "metrics": told.get("metrics", metrics),
        }
        self._phase = "train"
        self._reporter.beat("train", now=True, expect_next_in=self._patience, **facts)
        if point_step not in (None, self._pointed):  # a framework's next training counts from 0
            self._pointed = point_step
            values = {**told.get("metrics", further), "loss": facts["loss"], "lr": facts["lr"]}
            known = {name: value for name, value in values.items() if value is not None}  # null would mean NaN
            self._reporter.point(point_step, facts.get("epoch"), **known)

    def saved(self, note: CheckpointNote) -> None:
        """A framework wrote a checkpoint; the next beat tells of it."""
        if self._checkpoint is None or self._checkpoint.path != note.path:
            step = self.steps.count if note.step is None else note.step
            self._checkpoint = CheckpointNote(note.path, step, note.time or time.time())

    def _worked(self) -> None:
        """A backward pass or a step: it trains."""
        now = self._monotonic()
        self._was_away |= self._eval_at is not None or self._phase != "train"
        self._eval_at, self._idle_batches = None, 0
        if self._phase != "train":
            self._phase, self._next_beat = "train", now
        self._worked_at = now

    def before_compilation(self, *args: Any, **kwargs: Any) -> None:
        """Before ``torch.compile`` gets to work: a long silence, most often before the first step."""
        if self._reporter is None and self._torch.is_grad_enabled() and not self._off:
            self._begin()
        if self._thread == _thread.get_ident():
            self._beat_on("compile", self._monotonic(), _LONGEST_COMPILATION_SECONDS)

    def before_eval(self, *args: Any, **kwargs: Any) -> None:
        """Before ``Module.eval``."""
        if self._eval_at is None:
            self._eval_at = self._monotonic()
            if self._awake is not None:
                self._awake.start()

    def before_train(self, module: Any, mode: bool = True) -> None:
        """Before ``Module.train``, of each of its parts: what is computed from here on is no evaluation."""
        if mode and self._eval_at is not None:
            self._eval_at, self._idle_batches, self._was_away = None, 0, True
            if self._phase == "eval":
                self._beat_on("train", self._monotonic())

    def after_fetch(self, batch: Any, iterator: Any, *args: Any) -> None:
        """Behind ``__next__`` of a data loader: some batches without a backward pass between them are an evaluation."""
        self.passes.fetched(batch, iterator)
        if self._reporter is None or self._thread != _thread.get_ident():
            return
        now = self._monotonic()
        self._idle_batches += 1
        if self._idle_batches >= _IDLE_BATCHES:
            self.passes.evaluated(_IDLE_BATCHES)
            self._eval_at = self._eval_at or now
        if self._phase == "eval" or self._evaluates(now):
            self._beat_on("eval", now)

    def _evaluates(self, now: float) -> bool:
        return self._eval_at is not None and now - self._eval_at > _EVALUATES_AFTER_SECONDS

    def _beat_on(self, phase: str, now: float, seconds: float = 0.0) -> None:
        """A beat without new numbers: it computes, and trains no further."""
        if self._reporter is None or (self._phase == phase and now < self._next_beat) or self._pid != os.getpid():
            return
        with self._writing:
            if not self._off:
                self._phase, self._next_beat = phase, now + BEAT_SECONDS
                self._reporter.beat(phase, now=True, expect_next_in=seconds or self._patience)

    def _stay_awake(self) -> None:
        """On a thread of its own: beats on while a long evaluation without a data loader moves through the program."""
        now, worked_at = self._monotonic(), self._worked_at
        evaluates = self._phase == "eval" or (self._phase == "train" and self._evaluates(now))
        if not evaluates or self._off or self._awake is None or self._reporter is None:
            return
        try:
            if self._awake.stands_still(now) < 5 * BEAT_SECONDS and self._writing.acquire(False):
                try:
                    self._beat_on("eval", now)
                finally:
                    self._writing.release()
                if self._worked_at != worked_at and self._eval_at is None and self._phase != "save":
                    with self._writing:  # a step came while the door was shut: it has the last word
                        self._phase = "train"
                        self._reporter.beat("train")
        except Exception as error:  # noqa: BLE001 - a guest must not break the house
            self._give_up(error)

    def before_save(self, obj: Any, f: Any = None, *args: Any, **kwargs: Any) -> None:
        """Before ``torch.save``."""
        if self._reporter is not None and saving.path_of(f) and self._thread == _thread.get_ident():
            now = self._monotonic()
            if now - self._saved_at >= BEAT_SECONDS:  # one that saves all the time is told of once a second
                self._beat_on("save", now, _LONGEST_SAVE_SECONDS)

    def after_save(self, result: Any, obj: Any, f: Any = None, *args: Any, **kwargs: Any) -> None:
        """Behind ``torch.save``."""
        path = saving.path_of(f)
        if self._reporter is None or not path or self._thread != _thread.get_ident():
            return
        if self.trainer is None and not self.saves_folder:  # which would be told of as a whole
            self._checkpoint = CheckpointNote(os.path.abspath(path), self.steps.count, time.time())  # noqa: PTH100
        self._saved_at = self._monotonic()
        if self._phase == "save" and self._pid == os.getpid():
            with self._writing:
                self._phase = "train" if self._eval_at is None else "eval"
                self._reporter.beat(self._phase, expect_next_in=self._patience, checkpoint=self._checkpoint)

    def _answer(self, request: Request) -> None:
        assert self._reporter is not None
        if request.action == "save":
            self._save(request)
            return
        if request.action == "evaluate":
            self._reporter.answer(request, ok=False, text="this program evaluates by its own rules")
            return
        before = self._memory().driver
        gc.collect()
        backend = getattr(self._torch, self._device, None)
        if before is not None and backend is not None:
            backend.empty_cache()
        after = self._memory().driver
        freed = max(0, before - after) if before is not None and after is not None else 0
        text = "nothing to free" if before is None else f"freed {freed / 2**20:,.0f} MiB"
        self._reporter.answer(request, ok=True, text=text, before=before, after=after, freed=freed)

    def _save(self, request: Request) -> None:
        assert self._reporter is not None
        hook, step = saving.hook(), self.steps.count
        if hook is None:
            self._reporter.answer(request, ok=False, text=saving.NO_HOOK)
            return
        self._reporter.beat("save", expect_next_in=_LONGEST_SAVE_SECONDS)
        ok, text = saving.saved(hook, step)
        self._reporter.beat("train", expect_next_in=_LEAST_PATIENCE_SECONDS)
        self._reporter.answer(request, ok=ok, text=text)

    def _memory(self) -> MemoryReading:
        """The device's counters; they touch no tensor."""
        if self._thread != _thread.get_ident():
            return self._newest_memory
        self._newest_memory = device_memory(self._torch, self._device)
        return self._newest_memory

    def at_exit(self) -> None:
        """A last word: the newest numbers, and ``done`` unless an exception ended the program."""
        if self._off:
            return
        try:
            if not self._trains and self.losses.backwards >= _FEWEST_PASSES:
                self._start(self.losses.device)
            if self._reporter is None or self._pid != os.getpid():
                return
            if self._awake is not None:
                self._awake.end()
            with self._writing:
                if self._trains and _thread.get_ident() == self._thread:
                    self._beat(self._monotonic(), last=True)
                self._off = True
                if not hasattr(sys, "last_value"):  # an exception that nobody caught
                    self._reporter.beat("done", expect_next_in=0.0)
        except Exception:  # noqa: BLE001 - nobody can act on it any more, and a device may be gone
            self._off = True

    def _give_up(self, error: Exception) -> None:
        self._off = True
        if self._reporter is not None:
            self._reporter.disable(f"agent: {type(error).__name__}: {error}")
