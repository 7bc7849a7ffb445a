"""Requests that a callback carries out, checked for between two steps."""

from __future__ import annotations

import contextlib
import functools
import gc
import random
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeVar

from ..reporting import report
from .phases import EVALUATION_SECONDS

C = TypeVar("C", bound=type)


def harmless(kind: C) -> C:
    """Keep exceptions inside the hooks of a class: an unexpected one turns its hooks off, and an event says so.

    Exceptions that a framework raises to end a training are passed on. Hooks that are off return None, or the class's
    ``goes_on``.
    """
    bases = {base.__module__.partition(".")[0] for base in kind.__mro__[1:]} - {"builtins"}
    frameworks = {kind.__module__.rpartition(".")[2], *bases}
    for name, method in list(vars(kind).items()):
        if callable(method) and (name.startswith("_on_") or not name.startswith("_")):
            setattr(kind, name, _guarded(method, frameworks))
    return kind


def _guarded(method: Callable[..., Any], frameworks: Collection[str]) -> Callable[..., Any]:
    @functools.wraps(method)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        if getattr(self, "_mpstui_off", False):
            return getattr(self, "goes_on", None)
        try:
            return method(self, *args, **kwargs)
        except Exception as error:
            if type(error).__module__.partition(".")[0] in frameworks or type(error).__name__.startswith("Cancel"):
                raise  # by name, since fastai creates its own in a module of another name
            self._mpstui_off = True
            report.leaves(forgets=True)
            report.text(f"the callback is off, the training goes on ({type(error).__name__}: {error})")
            return getattr(self, "goes_on", None)

    return guarded


def clear_cache_if_asked() -> None:
    """Free the device memory that torch holds but no tensor uses, if asked to, and answer how much that was."""
    if not report.requested("clear_cache"):
        return
    backend = _backend()
    before = _held(backend)
    gc.collect()
    if before is None:
        report.answer("clear_cache", "nothing to free")
        return
    backend.empty_cache()
    after = _held(backend) or 0
    freed = max(0, before - after)
    report.answer("clear_cache", f"freed {freed / 2**20:,.0f} MiB", before=before, after=after, freed=freed)


class BrokenOff(Exception):
    """Ends an evaluation early, since the run is to stop."""


def evaluate_if_asked(evaluate: Callable[[], Mapping[str, Any]], step: int) -> bool:
    """Evaluate out of turn and report the result, if somebody asked for it; False if nobody did.

    The training does not notice it. If it fails, only an event says so.
    """
    if not report.requested("evaluate"):
        return False
    with report.phase("evaluating", expect_seconds=EVALUATION_SECONDS), _same_randomness():
        try:
            report({name: number(value) for name, value in evaluate().items()}, step=step)
        except BrokenOff:
            pass
        except Exception as error:  # noqa: BLE001 - anything may be evaluated
            report.text(f"it could not evaluate, the training goes on ({type(error).__name__}: {error})")
    return True


def break_off_if_stopped(*_: object, **__: object) -> None:
    """Raise :class:`BrokenOff`, between two steps of an evaluation, if a stop was requested."""
    if report.requested("stop"):
        raise BrokenOff


@contextlib.contextmanager
def _same_randomness() -> Iterator[None]:
    """Restore the random generators afterwards, whatever is drawn in between."""
    numpy, torch, backend = sys.modules.get("numpy"), sys.modules.get("torch"), _backend()
    every = "_all" if hasattr(backend, "get_rng_state_all") else ""
    drawn, of_numpy = random.getstate(), numpy.random.get_state() if numpy is not None else None
    of_torch = torch.get_rng_state() if torch is not None else None
    of_devices = getattr(backend, f"get_rng_state{every}")() if backend is not None else None
    try:
        yield
    finally:
        random.setstate(drawn)
        if numpy is not None:
            numpy.random.set_state(of_numpy)
        if torch is not None:
            torch.set_rng_state(of_torch)
        if backend is not None:
            getattr(backend, f"set_rng_state{every}")(of_devices)


def _backend() -> Any:
    """``torch.cuda`` or ``torch.mps``, whichever this process uses; None on the CPU."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        return torch.cuda
    return torch.mps if torch.backends.mps.is_available() else None


def _held(backend: Any) -> int | None:
    if backend is None:
        return None
    read = getattr(backend, "memory_reserved", None) or backend.driver_allocated_memory
    return int(read())


def number(value: Any) -> float | None:
    """Convert a number, or a tensor of one, to float; None for anything else."""
    try:
        return None if value is None or isinstance(value, (str, bool)) else float(value)
    except (TypeError, ValueError, RuntimeError):
        return None
