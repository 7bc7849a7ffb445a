"""The agent: watches the optimizers of a program that was never written for mpstui, from inside its process.

torch is never imported here: it is handed in by whoever saw it being imported. Tensors are touched on the training
thread alone, since two threads on MPS end the process (pytorch#197805).
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from ..wire.heartbeat import DeviceReading, MemoryReading
from ..wire.records import Request
from .losses import Losses
from .reporter import BEAT_SECONDS, Reporter, listen_for_stacks, place_of

_LEAST_PATIENCE_SECONDS = 60.0
_PATIENCE_STEPS = 50
_LONGEST_SAVE_SECONDS = 300.0
_SAVE_HOOK = "mpstui_save"
_SHIPPED_REPORTER = "mpstui.agent.reporter"


def install(torch: Any, environ: Mapping[str, str]) -> StepWatch | None:
    """Watch this process if it turns out to train; None when there is no run to report to.

    Nothing is reported before the first optimizer step, so that data-loader workers, torchrun itself and helper
    programs that merely import torch stay silent. A program that hangs before it can be asked for its stacks.
    """
    if environ.get("MPSTUI_AGENT_DEVICE") == "cpu":
        force_cpu(torch)
    if not environ.get("MPSTUI_RUN_DIR"):
        return None
    argv = getattr(sys, "orig_argv", sys.argv)  # from Python 3.10 on
    if "--multiprocessing-fork" not in argv:  # a data-loader worker, most often; a rank listens as it begins
        listen_for_stacks(*place_of(environ))
    watch = StepWatch(torch, environ)
    watch.attach()
    return watch


class StepWatch:
    """Counts optimizer steps, keeps the last loss, beats at most once a second, answers requests."""

    def __init__(
        self, torch: Any, environ: Mapping[str, str], *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._torch = torch
        self._environ = environ
        self._monotonic = monotonic
        self._reporter: Reporter | None = None
        self._off = False
        self._pid = 0
        self._thread = 0
        self._steps: dict[int, int] = {}
        self._losses = Losses(torch)
        self._lr: float | None = None
        self._device = "cpu"
        self._next_beat = float("-inf")
        self._beaten_step = 0
        self._beaten_at = 0.0
        self._crashed = False

    def attach(self) -> None:
        """Put the hooks into torch."""
        sys.modules["torch.optim.optimizer"].register_optimizer_step_post_hook(self._after_step)
        self._wrap(self._torch.autograd, "backward", self._losses.before_backward)
        self._wrap(self._torch.amp.GradScaler, "scale", self._losses.before_scale)
        self._wrap(sys, "excepthook", self._on_crash)
        atexit.register(self._at_exit)

    def _wrap(self, owner: Any, name: str, look: Callable[..., None]) -> None:
        setattr(owner, name, watched(getattr(owner, name), self._guarded(look)))

    def _guarded(self, look: Callable[..., None]) -> Callable[..., None]:
        """The same, switched off for good at its first surprise: a guest must not break the house."""

        def guarded(*args: Any, **kwargs: Any) -> None:
            if not self._off:
                try:
                    look(*args, **kwargs)
                except Exception as error:  # noqa: BLE001 - see above
                    self._give_up(error)

        return guarded

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Runs behind every optimizer's step, on its thread."""
        if self._off:
            return
        try:
            key = id(optimizer)
            self._steps[key] = self._steps.get(key, 0) + 1
            self._losses.stepped()
            if self._reporter is None:
                self._begin(optimizer)
            if self._pid != os.getpid():  # a fork of a training: the parent keeps the heartbeat
                self._off = True
                return
            self._report(optimizer)
        except Exception as error:  # noqa: BLE001 - a guest must not break the house
            self._give_up(error)

    def _begin(self, optimizer: Any) -> None:
        if _SHIPPED_REPORTER in sys.modules:  # this program reports by itself
            self._off = True
            return
        self._pid, self._thread = os.getpid(), threading.get_ident()
        self._device = next(
            (str(one.device.type) for group in optimizer.param_groups for one in group["params"]), "cpu"
        )
        self._reporter = Reporter.from_environment({**self._environ, **self._ranks()}, by="agent")
        self._reporter.memory = self._memory
        self._reporter.listen_for_stacks()
        device = DeviceReading(self._device, None, None)
        self._reporter.beat("train", device=device, expect_next_in=_LEAST_PATIENCE_SECONDS, step=0)
        self._reporter.event("first_step", "the agent saw the first optimizer step")
        self._beaten_at = self._monotonic()

    def _ranks(self) -> dict[str, str]:
        """Rank and world size as torch.distributed knows them: processes from mp.spawn have no RANK variable."""
        distributed = getattr(self._torch, "distributed", None)
        if distributed is None or not distributed.is_available() or not distributed.is_initialized():
            return {}
        return {"RANK": str(distributed.get_rank()), "WORLD_SIZE": str(distributed.get_world_size())}

    def _report(self, optimizer: Any) -> None:
        if self._reporter is None:
            return
        now = self._monotonic()
        if now >= self._next_beat:
            self._next_beat = now + BEAT_SECONDS
            lr = optimizer.param_groups[0].get("lr")
            self._lr = None if lr is None else float(lr)
            self._beat(now)
        for request in self._reporter.requests():
            self._answer(request)

    def _beat(self, now: float, *, last: bool = False) -> None:
        """Read the loss back (this waits for the device, hence once a second) and write beat and point."""
        assert self._reporter is not None
        step = max(self._steps.values())
        elapsed, done = now - self._beaten_at, step - self._beaten_step
        speed = done / elapsed if done and elapsed > 0.1 else None
        self._beaten_at, self._beaten_step = now, step
        # What passes backward in the first step may be one of several losses: the second step tells.
        loss, further = self._losses.read() if last or max(self._steps.values()) > 1 else (None, {})
        passes = self._losses.passes_per_step
        metrics = {"backward_passes_per_step": float(passes), **further} if passes > 1 else further
        patience = max(_LEAST_PATIENCE_SECONDS, _PATIENCE_STEPS / speed if speed else 0.0)
        seen = None if loss is None else "backward"
        facts = {"step": step, "loss": loss, "loss_seen": seen, "lr": self._lr, "steps_per_second": speed}
        self._reporter.beat("train", now=True, expect_next_in=patience, metrics=metrics, **facts)
        self._reporter.point(step, None, loss=loss, lr=self._lr, **further)

    def _answer(self, request: Request) -> None:
        assert self._reporter is not None
        if request.action == "save":
            self._save(request)
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
        """Let the program save, if its main script offers how: ``def mpstui_save() -> path``, called behind a step."""
        assert self._reporter is not None
        step = max(self._steps.values())
        hook = getattr(sys.modules.get("__main__"), _SAVE_HOOK, None)
        if not callable(hook):
            text = f"this program saves by its own rules: its main script has no function `{_SAVE_HOOK}` to call"
            self._reporter.answer(request, ok=False, text=text)
            return
        self._reporter.beat("save", expect_next_in=_LONGEST_SAVE_SECONDS)
        try:
            path = hook()
        except Exception as error:  # noqa: BLE001 - a checkpoint that fails must not cost the training
            ok, text = False, f"`{_SAVE_HOOK}` failed: {type(error).__name__}: {error}"
        else:
            ok, text = True, f"saved at step {step}" + (f": {path}" if isinstance(path, (str, os.PathLike)) else "")
        self._reporter.beat("train", expect_next_in=_LEAST_PATIENCE_SECONDS)
        self._reporter.answer(request, ok=ok, text=text)

    def _memory(self) -> MemoryReading:
        """The device's counters; they touch no tensor."""
        if self._device == "mps":
            mps = self._torch.mps
            limit = getattr(mps, "recommended_max_memory", None)
            return MemoryReading(
                mps.current_allocated_memory(), mps.driver_allocated_memory(), limit() if limit else None
            )
        if self._device == "cuda":
            cuda = self._torch.cuda
            return MemoryReading(
                cuda.memory_allocated(), cuda.memory_reserved(), cuda.get_device_properties().total_memory
            )
        return MemoryReading()

    def _on_crash(self, *details: Any) -> None:
        self._crashed = True

    def _at_exit(self) -> None:
        """A last word: the newest loss, and ``done`` unless an exception ended the program."""
        if self._off or self._reporter is None or self._pid != os.getpid():
            return
        try:
            if threading.get_ident() == self._thread and max(self._steps.values()) > self._beaten_step:
                self._beat(self._monotonic(), last=True)
            if not self._crashed:
                self._reporter.beat("done", expect_next_in=0.0)
        except Exception as error:  # noqa: BLE001 - nobody can act on it any more
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self._off = True
        if self._reporter is not None:
            self._reporter.disable(f"agent: {type(error).__name__}: {error}")


def watched(original: Any, before: Callable[..., None]) -> Any:
    """A function that calls ``before`` with the same arguments first; it must raise nothing."""

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        before(*args, **kwargs)
        return original(*args, **kwargs)

    wrapped.__wrapped__ = original  # type: ignore[attr-defined]
    return wrapped


def force_cpu(torch: Any) -> None:
    """Let torch answer that there is neither MPS nor another accelerator.

    ``torch._C._mps_is_available`` is behind all public questions, some of which remember their first answer; the ones
    that ask "was it built in" and "which accelerator" are answered too.
    """
    torch._C._mps_is_available = lambda: False
    available = torch.backends.mps.is_available
    if hasattr(available, "cache_clear"):
        available.cache_clear()
    torch.backends.mps.is_built = lambda: False
    torch.cuda.is_available = lambda: False
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None and hasattr(accelerator, "current_accelerator"):
        accelerator.current_accelerator = lambda check_available=False: None
        accelerator.is_available = lambda: False
