"""Where the agent hooks into torch: wrappers that call the agent before or after the original, and change nothing.

torch is never imported here: the boot, which sees the program import it, passes it in.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import inspect
import sys
import time
import types
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ..wire import rundir, storage
from . import frameworks
from .override import force_cpu
from .reporter import listen_for_stacks, place_of
from .watch import Watch

_watches: list[Watch] = []
"""The watch of this process, once there is one."""


def install(torch: Any, environ: Mapping[str, str]) -> Watch | None:
    """Hook into torch, and force it onto the CPU if that was asked for; return None if there is no run to report to.

    Nothing is reported before the first optimizer step, so that data-loader workers, torchrun itself and other programs
    that merely import torch stay silent. A program that hangs before that can still be asked for its stacks.
    """
    if environ.get("MPSTUI_AGENT_DEVICE") == "cpu":
        force_cpu(torch, functools.partial(_tell, environ))
    if not environ.get("MPSTUI_RUN_DIR"):
        return None
    if not _is_spawned():  # a spawned rank listens once its training begins
        listen_for_stacks(*place_of(environ))
    watch = Watch(torch, environ)
    attach(torch, watch)
    _watches.append(watch)
    return watch


def _is_spawned() -> bool:
    """Return whether another Python process spawned this one, usually as a data-loader worker."""
    return "--multiprocessing-fork" in getattr(sys, "orig_argv", sys.argv)  # orig_argv: from Python 3.10 on


def _tell(environ: Mapping[str, str], text: str) -> None:
    """Write an event of the run, from its main process only."""
    if environ.get("MPSTUI_RUN_DIR") and environ.get("RANK", "0") == "0" and not _is_spawned():
        run, attempt = place_of(environ)
        with contextlib.suppress(OSError):
            storage.append_line(run.events, rundir.event(time.time(), attempt, "note", text))


def attach(torch: Any, watch: Watch) -> None:
    """Put the hooks into torch, except those for functions that this version of it does not have."""
    optim = sys.modules["torch.optim.optimizer"]
    is_compiling = _found(torch, "compiler.is_compiling") or bool

    def after_step(optimizer: Any, args: Any, kwargs: Any) -> None:
        if not is_compiling():  # a compiler that traces the step must not trace the agent
            watch.after_step(optimizer)

    optim.register_optimizer_step_post_hook(after_step)
    data = _found(torch, "utils.data")
    for owner, name, before, after in (
        (torch.autograd, "backward", watch.before_backward, None),
        (_found(torch, "amp.GradScaler"), "scale", watch.losses.before_scale, None),
        (_found(torch, "nn.Module"), "eval", watch.before_eval, None),
        (_found(torch, "nn.Module"), "train", watch.before_train, None),
        (_found(optim, "Optimizer"), "__init__", watch.steps.made, None),
        (_found(optim, "Optimizer"), "load_state_dict", watch.steps.resumed, None),
        (_found(torch, "serialization"), "load", None, watch.steps.loaded),
        (_found(torch, "serialization"), "save", watch.before_save, watch.after_save),
        (sys.modules.get("shutil"), "copyfile", None, watch.written.after_copy),  # loaded by torch, as is the next
        (
            _found(sys.modules.get("argparse"), "ArgumentParser"),
            "parse_known_args",
            None,
            watch.steps.parsed.after_parse,
        ),
        (_found(torch, "cuda.CUDAGraph"), "capture_begin", None, watch.captured.after_begin),
        (_found(torch, "cuda.CUDAGraph"), "capture_end", watch.captured.before_end, watch.captured.after_end),
        (_found(torch, "cuda.CUDAGraph"), "replay", None, watch.captured.after_replay),
        (_found(data, "DataLoader"), "__iter__", None, watch.passes.begun),
        (_found(data, "dataloader._BaseDataLoaderIter"), "__next__", watch.before_fetch, watch.after_fetch),
    ):
        _wrap(watch, owner, name, before, after)
    if hasattr(torch, "save"):
        torch.save, torch.load = torch.serialization.save, torch.serialization.load
    _hide_from_compilers(torch)
    atexit.register(watch.at_exit)


def imported(module: Any) -> None:
    """Hook into a framework that was just imported, if there is a watch."""
    if _watches:
        for path, name, before, after in frameworks.hooks_of(module.__name__, _watches[0]):
            _wrap(_watches[0], _found(module, path) if path else module, name, before, after)
        _hide_from_compilers(sys.modules["torch"])


def _wrap(watch: Watch, owner: Any, name: str, before: Any, after: Any) -> None:
    if hasattr(owner, name):
        setattr(owner, name, watched(getattr(owner, name), watch, before, after))


class Guest(Protocol):
    """An observer that is switched off by its first failure."""

    is_off: bool

    def give_up(self, error: Exception) -> None:
        """Stay off from now on."""


def watched(
    original: Any, guest: Guest, before: Callable[..., None] | None = None, after: Callable[..., None] | None = None
) -> Any:
    """Wrap ``original``: ``before`` is called first with the same arguments, ``after`` last with result and arguments.

    Their first exception switches the guest off for good: it must never harm the program. In every other respect the
    function passes for the original: in name and signature, in tracebacks, in the line that a warning is attributed to,
    and in what a compiler makes of it.
    """

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if before is not None and not guest.is_off:
            try:
                before(*args, **kwargs)
            except Exception as failure:  # noqa: BLE001 - see above
                guest.give_up(failure)
        try:
            result = original(*args, **kwargs)
        except BaseException as error:
            if error.__traceback__ is not None:
                error.__traceback__ = error.__traceback__.tb_next
                _handle_as_it_is(error)
            raise
        if after is not None and not guest.is_off:
            try:
                after(result, *args, **kwargs)
            except Exception as failure:  # noqa: BLE001 - see above
                guest.give_up(failure)
        return result

    wrapped.__code__ = _passed_over(wrapped.__code__)
    functools.update_wrapper(wrapped, original, updated=())
    if not hasattr(original, "__wrapped__"):
        with contextlib.suppress(TypeError, ValueError):  # a C function may have none
            wrapped.__signature__ = inspect.signature(original)  # type: ignore[attr-defined]
    wrapped._torchdynamo_inline = original  # type: ignore[attr-defined]
    return wrapped


def _handle_as_it_is(error: BaseException) -> None:
    """Make a bare ``raise`` keep the traceback we shortened: before Python 3.11 it restores the one it caught."""
    if sys.version_info < (3, 11):  # noqa: UP036  other people's Pythons
        import ctypes  # torch loads it too

        trace = error.__traceback__
        handled = [ctypes.py_object(type(error)), ctypes.py_object(error)]
        handled.append(ctypes.py_object() if trace is None else ctypes.py_object(trace))
        for one in handled:
            ctypes.pythonapi.Py_IncRef(one)  # the next call takes over one reference to each
        ctypes.pythonapi.PyErr_SetExcInfo(*handled)


@functools.cache
def _passed_over(code: types.CodeType) -> types.CodeType:
    """Return the code under a file name whose frames ``warnings`` and ``logging`` skip, as they skip importlib's."""
    return code.replace(co_filename=f"{code.co_filename} (passed over like importlib._bootstrap)")


def _found(owner: Any, path: str) -> Any:
    return functools.reduce(lambda found, name: getattr(found, name, None), path.split("."), owner)


def _hide_from_compilers(torch: Any) -> None:
    """Make dynamo run our functions as they are, instead of tracing them like every other function it meets."""
    dynamo = _found(torch, "_C._dynamo.eval_frame")
    skip = getattr(dynamo, "skip_code", None)
    if skip is None and hasattr(dynamo, "set_code_exec_strategy"):
        action = dynamo._FrameAction.SKIP
        strategy = dynamo._FrameExecStrategy(action, action)

        def skip(code: Any) -> None:
            dynamo.set_code_exec_strategy(code, strategy)

    if skip is None:
        return
    package = __name__.rpartition(".agent")[0]
    waiting = [
        part.__code__
        for name, module in list(sys.modules.items())
        if name.startswith(package + ".")
        for owner in (module, *(one for one in vars(module).values() if isinstance(one, type)))
        for part in vars(owner).values()
        if isinstance(part, types.FunctionType) and str(part.__module__).startswith(package)
    ]
    while waiting:
        code = waiting.pop()
        skip(code)
        skip(_passed_over(code))
        waiting += [const for const in code.co_consts if isinstance(const, types.CodeType)]
