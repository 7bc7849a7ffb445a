"""The agent: watches the training of a program that does not know mpstui, from inside its process.

Only the training thread touches tensors: on MPS, a second thread that does so crashes the process (pytorch#197805).
"""

from __future__ import annotations

import _thread
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from ..wire.heartbeat import CheckpointNote, DeviceReading, MemoryReading
from . import answering, ranks, saving
from .awake import Awake
from .captured import CapturedSteps
from .counting import Steps
from .evaluating import Evaluating
from .losses import Losses
from .memory import device_memory
from .pace import Pace
from .passes import Passes
from .points import StepPoints
from .reporter import BEAT_SECONDS, POLL_SECONDS, Reporter
from .scalars import Scalars

_LONGEST_COMPILATION_SECONDS = 1800.0
_BLIND_SECONDS = 20.0
"""How long to watch backward passes without an optimizer step before reporting that."""
_FEWEST_PASSES = 3
_SHIPPED_REPORTER = "mpstui.agent.reporter"


class Watch:
    """Counts optimizer steps, remembers the last loss, writes a heartbeat at most once a second, answers requests."""

    def __init__(
        self, torch: Any, environ: Mapping[str, str], *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.losses = Losses(torch)
        self.passes = Passes(torch)
        self.steps = Steps(lambda loaded: saving.step_begun_from(environ, loaded))
        self.trainer: Callable[[], dict[str, Any]] | None = None
        """Returns what a framework's own loop reports, which takes precedence over what the hooks see: heartbeat
        fields, new ``points`` as (step, values), ``logged_loss`` in case no loss was seen, and ``counts_behind``: True
        if its step count lags one behind the optimizer's."""
        self.scalars = Scalars(self)
        self._torch = torch
        self._environ = environ
        self._monotonic = monotonic
        self._loaded_at = monotonic()
        self._trains = False
        self._reporter: Reporter | None = None
        self.is_off = False
        self._pid = self._thread = 0
        self._claim: int | None = None
        self._awake: Awake | None = None
        self._writing = _thread.RLock()
        """Held while reporting: several threads may train, and another one watches long evaluations."""
        self._device = "cpu"
        self.captured = CapturedSteps(self._stepped)
        self._phase = "train"
        self._worked_at = self._first_backward = 0.0
        self._saved_at = self._next_beat = self._next_look = float("-inf")
        self.written = saving.Written()
        self.saves_folder = False  # the file being saved is part of a checkpoint folder
        self._newest_memory = MemoryReading()
        self._pace, self._points = Pace(), StepPoints()
        self.evaluating = Evaluating(self._pace, self.passes)
        self._told = 0  # step count in the newest beat

    def before_backward(self, tensors: Any = None, *args: Any, **kwargs: Any) -> None:
        """Before ``torch.autograd.backward``."""
        self.losses.before_backward(tensors, *args, **kwargs)
        self.steps.begins()
        self._worked()
        self._first_backward = self._first_backward or self._worked_at
        if not self.steps.seen and not self.captured.is_capturing:
            self._go_on_without_steps()

    def after_step(self, optimizer: Any) -> None:
        """After every optimizer's ``step``, on the same thread."""
        if self.is_off:
            return
        try:
            self.losses.stepped(optimizer)
            if self.captured.is_capturing:
                self.captured.take(optimizer)
            else:
                self._stepped(optimizer)
        except Exception as error:  # noqa: BLE001 - it must never harm the program
            self.give_up(error)

    def _stepped(self, optimizer: Any) -> None:
        joins = self.steps.joins(optimizer, on_same_batch=self.passes.on_same_batch)
        passes_per_step = self.losses.passes_per_step
        self.passes.stepped(passes_per_step, self.steps.network(optimizer), joins=joins)
        of_epoch = None if self.steps.seen else self.passes.epoch_steps(passes_per_step)
        self.passes.take_back(self.steps.stepped(optimizer, of_epoch, joins=joins))
        self._worked()
        if not joins:
            self._pace.stepped(self._worked_at)
        if not self._trains:
            groups = (one for group in optimizer.param_groups for one in group["params"])
            self._start(next((str(one.device.type) for one in groups), "cpu"))
        self._report()

    def _go_on_without_steps(self) -> None:
        """Report although only backward passes are seen: the optimizer is not torch's, or its step is compiled."""
        if not self._trains:
            waits = self._worked_at - self._first_backward < _BLIND_SECONDS and self.trainer is None
            if (waits and self.steps.stand_still) or self.losses.backwards < _FEWEST_PASSES:
                return
            self._start(self.losses.device)
        self._report()

    def goes_on(self, device: str) -> None:
        """Note that a framework's loop works between optimizer steps: it collects samples or accumulates gradients."""
        self._worked()
        self._start(device)
        self._report()

    def _is_blind(self) -> bool:
        return self.steps.count is None and self.trainer is None

    def _begin(self) -> None:
        if _SHIPPED_REPORTER in sys.modules:  # this program reports itself
            self.is_off = True
            return
        self._pid, self._thread = os.getpid(), _thread.get_ident()
        told, self._claim = ranks.claimed(self._torch, self._environ)
        self._pace.world_size = int(told["WORLD_SIZE"])
        self._reporter = Reporter.from_environment({**self._environ, **told}, by="agent")
        self._reporter.memory, self._reporter.count = self._memory, lambda: self.steps.count
        self._reporter.listen_for_stacks()
        self._awake = Awake(self._stay_awake, BEAT_SECONDS)

    def _start(self, device: str) -> None:
        """Report that training has begun; the next step may take as long as everything so far, compiling included."""
        with self._writing:
            if self._reporter is None:
                self._begin()
            if self._reporter is None or self._trains or self._pid != os.getpid():
                return
            self._trains, self._device, self._thread = True, device, _thread.get_ident()
            now, done = self._monotonic(), self.steps.before or 0
            self._pace.begin(now, done, now - self._loaded_at)
            reading, step = DeviceReading(device, None, None), None if self._is_blind() else done
            self._reporter.beat("train", device=reading, expect_next_in=self._pace.patience, step=step)
            if self._is_blind():
                text = "the agent is loaded, but saw no step of a torch optimizer: it counts none"
                self._reporter.event("note", text)
            else:
                seen = "first optimizer step" if self.steps.seen else "beginning of the training"
                self._reporter.event("first_step", f"the agent saw the {seen}")

    def _report(self) -> None:
        now = self._worked_at
        if self._reporter is None or (now < self._next_beat and now < self._next_look):
            return
        if self._pid != os.getpid():  # we are a fork of the training: the heartbeat remains the parent's
            self.is_off = True
        elif self._writing.acquire(False):
            try:
                if now >= self._next_beat:
                    self._next_beat = now + BEAT_SECONDS
                    self._beat(now)
                if now >= self._next_look:
                    self._next_look = now + POLL_SECONDS
                    for request in self._reporter.requests():
                        backend = getattr(self._torch, self._device, None)
                        answering.answer(request, self._reporter, self._memory, backend, self.steps.count)
            finally:
                self._writing.release()

    def _beat(self, now: float, phase: str = "train", seconds: float = 0.0, *, last: bool = False) -> None:
        """Read the loss back (which waits for the device, hence only once a second); write a heartbeat and points.

        Args:
            now: when the newest step was made.
            phase: what begins after it.
            seconds: how long that may be silent before there is cause for concern; 0: as long as training may.
        """
        assert self._reporter is not None
        assert self._awake is not None
        self._awake.start()  # in case a fork ended it
        told = self.trainer() if self.trainer is not None else {}
        step = self.steps.count if not told else told["step"]
        at = (step or 0) + 1 if told.pop("counts_behind", 0) and phase == "train" and not last else step  # of the loss
        self._pace.beat(now, step or 0, self.passes.samples, trained=self._phase == "train")
        by_trainer = "loss" in told
        settled = (last or (self.steps.count or 0) - (self.steps.before or 0) != 1) and not by_trainer
        loss, further = self.losses.read() if settled else (None, {})
        points, logged = told.pop("points", None) or self.scalars.take(), told.pop("logged_loss", None)
        loss, passes = logged if loss is None else loss, self.losses.passes_per_step
        metrics = {"backward_passes_per_step": float(passes), **further} if passes > 1 else further
        anew = self.steps.may_go_on or self._environ.get("MPSTUI_ATTEMPT", "1") != "1"
        counted = not told and step is not None
        other = "updates" if self.scalars.acts else "evaluations" if self.losses.searches else None
        facts = {
            "step_from": "process" if counted and anew and not self.steps.before else other if counted else None,
            "loss_seen": "trainer" if told and (by_trainer or loss is not None) else "backward",
            "steps_per_second": self._pace.steps_per_second,
            "samples_per_second": self._pace.samples_per_second,
            "accumulate": passes if passes >= 1 and settled and not self.losses.are_several else None,
            "checkpoint": self.written.newest,
            **self.steps.facts(),
            **self.passes.facts(passes, **self.steps.behind()),
            **told,
            "loss": told["loss"] if by_trainer else loss,
            "step": step,
            "metrics": told.get("metrics", metrics),
        }
        self._phase, self._told = phase, step or 0
        self._reporter.beat(phase, now=True, expect_next_in=seconds or self._pace.patience, **facts)
        self._tell_of_checkpoints()
        for done, values in points:
            self._reporter.point(done, facts.get("epoch") if done == step else None, **values)
        if not by_trainer:
            epoch, known = facts.get("epoch"), {**further, "lr": facts["lr"]}
            if settled:
                known |= {} if further and loss is None else {"loss": loss}
                self._points.tell(self._reporter, at, epoch, known)
            else:
                self._points.hold(at, epoch, {**known, "loss": self.losses.read()[0]})

    def saved(self, note: CheckpointNote) -> None:
        """Note that a framework wrote a checkpoint that a training can resume from."""
        self.written.add(note.path, self.steps.count if note.step is None else note.step, note.time)
        if self._reporter is not None and not self._reporter.is_spoken_for():
            self._tell_of_checkpoints()

    def _tell_of_checkpoints(self) -> None:
        """Write an event for each new checkpoint; a program that reports its own has done so by the next beat."""
        for note, besides in self.written.untold():
            if self._reporter is not None:
                self._reporter.saved(note, **besides)

    def _worked(self) -> None:
        """Note that the program is training: it made a backward pass or a step."""
        now = self._monotonic()
        self.evaluating.trains(other_work=self._phase != "train")
        if self._phase != "train":
            self._phase, self._next_beat = "train", now
        self._worked_at = now

    def before_compilation(self, *args: Any, **kwargs: Any) -> None:
        """Before ``torch.compile`` starts to compile: a long silence, usually before the first step."""
        if self._reporter is None and self._torch.is_grad_enabled() and not self.is_off:
            self._begin()
        if self._thread == _thread.get_ident():
            self._beat_on("compile", self._monotonic(), _LONGEST_COMPILATION_SECONDS)

    def before_eval(self, *args: Any, **kwargs: Any) -> None:
        """Before ``Module.eval``."""
        if self.evaluating.begins(now := self._monotonic()):
            self.steps.evaluates(now)
            if self._awake is not None:
                self._awake.start()

    def evaluates(self, *args: Any, **kwargs: Any) -> None:
        """Note that a framework begins an evaluation."""
        self.before_eval()
        self._beat_on("eval", self._monotonic())

    def before_train(self, module: Any, mode: bool = True) -> None:
        """Before ``Module.train``, of the model or a part of it: this ends an evaluation."""
        if mode and self.evaluating.since is not None:
            self.evaluating.ends(now := self._monotonic())
            if self._phase == "eval":
                self._beat_on("train", now)

    def before_fetch(self, iterator: Any, *args: Any) -> None:
        """Before ``__next__`` of a data loader."""
        self.evaluating.fetches(self._monotonic())

    def after_fetch(self, batch: Any, iterator: Any, *args: Any) -> None:
        """After ``__next__`` of a data loader."""
        if self.passes.fetched(batch, iterator):
            self.steps.ends_step()
        if self._reporter is None or self._thread != _thread.get_ident():
            return
        self.evaluating.fetched(now := self._monotonic(), self.steps.already or 0)
        if self._phase == "eval" or self.evaluating.is_long(now):
            self._beat_on("eval", now)

    def _beat_on(self, phase: str, now: float, seconds: float = 0.0) -> None:
        """Write a heartbeat while the program does not train: its only new numbers are those of the steps before."""
        if self._reporter is None or (self._phase == phase and now < self._next_beat) or self._pid != os.getpid():
            return
        with self._writing:
            if self.is_off:
                return
            self._next_beat = now + BEAT_SECONDS
            ends = self._trains and self._phase == "train" and self._thread == _thread.get_ident()
            if ends and phase in ("eval", "save"):  # perhaps for minutes: first report the steps before
                self._beat(self._worked_at, phase, seconds)
            else:
                step = self.steps.already if self.trainer is None and self._trains else None
                self._phase, known = phase, {} if step is None else {"step": step}
                self._reporter.beat(phase, now=True, expect_next_in=seconds or self._pace.patience, **known)

    def _stay_awake(self) -> None:
        """On the second thread: keep the heartbeat going during an evaluation that is silent or has no data loader."""
        now, worked_at = self._monotonic(), self._worked_at
        if self.is_off or self._awake is None or self._reporter is None or self._phase not in ("eval", "train"):
            return
        try:
            self._tell_last_steps(now)
            silent = self._trains and now - worked_at > self._pace.patience / 2 and self._awake.computes(now)
            away = silent if self.evaluating.since is None else self._phase == "eval" or self.evaluating.is_long(now)
            if away and self._awake.stands_still(now) < 5 * BEAT_SECONDS and self._writing.acquire(False):
                try:
                    self._beat_on("eval", now)
                finally:
                    self._writing.release()
                if self._worked_at != worked_at and self.evaluating.since is None and self._phase != "save":
                    with self._writing:  # a step was made in the meantime: it takes precedence
                        self._phase = "train"
                        self._reporter.beat("train")
        except Exception as error:  # noqa: BLE001 - as in after_step
            self.give_up(error)

    def _tell_last_steps(self, now: float) -> None:
        """On the second thread: report the steps since the last heartbeat if no more came for a moment. The pause may
        take minutes, as when the program draws figures. Numbers in tensors have to wait for the training thread."""
        told, rests = self.steps.already or 0, self._trains and now - self._worked_at >= BEAT_SECONDS
        if self._reporter is not None and self.trainer is None and rests and self._told < told:
            with self._writing:
                if self._phase == "train" and self.evaluating.since is None:
                    self._told = told
                    where = self.passes.facts(self.losses.passes_per_step, **self.steps.behind())
                    self._reporter.beat("train", now=True, step=told, **where)

    def before_save(self, obj: Any, f: Any = None, *args: Any, **kwargs: Any) -> None:
        """Before ``torch.save``."""
        if self._reporter is not None and saving.path_of(f) and self._thread == _thread.get_ident():
            now = self._monotonic()
            if now - self._saved_at >= BEAT_SECONDS:  # a program that saves all the time is reported once a second
                self._beat_on("save", now, saving.LONGEST_SECONDS)

    def after_save(self, result: Any, obj: Any, f: Any = None, *args: Any, **kwargs: Any) -> None:
        """After ``torch.save``."""
        path = saving.path_of(f)
        trains = self._reporter is not None or self.losses.backwards >= _FEWEST_PASSES
        if not path or not trains or self._thread not in (0, _thread.get_ident()):
            return
        acts = self.trainer == self.scalars.read
        alone = (self.trainer is None or acts) and not self.saves_folder  # else the whole checkpoint is reported later
        if alone and any(parts := saving.parts_saved(obj)):
            self.written.add(path, self.scalars.step if acts else self.steps.count, weights_only=not parts[1])
        self._saved_at = self._monotonic()
        if self._reporter is not None and self._phase == "save" and self._pid == os.getpid():
            with self._writing:
                self._phase = "train" if self.evaluating.since is None else "eval"
                self._reporter.beat(self._phase, expect_next_in=self._pace.patience, checkpoint=self.written.newest)

    def _memory(self) -> MemoryReading:
        """Return the device's counters, which touch no tensor; on other threads, the last reading."""
        if self._thread == _thread.get_ident():
            self._newest_memory = device_memory(self._torch, self._device)
        return self._newest_memory

    def at_exit(self) -> None:
        """Write the last heartbeat: the newest numbers, and phase ``done`` unless an exception ended the program."""
        if self.is_off:
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
                self.is_off = True
                if not hasattr(sys, "last_value"):  # it is set by an uncaught exception
                    self._reporter.beat("done", expect_next_in=0.0)
        except Exception:  # noqa: BLE001 - nobody can act on it any more, and a device may be gone
            self.is_off = True

    def give_up(self, error: Exception) -> None:
        """Switch off for good, because a hook has failed."""
        self.is_off = True
        if self._reporter is not None:
            self._reporter.disable(f"agent: {type(error).__name__}: {error}")
