"""Keeps a program on the CPU: accelerators are hidden, and if the program names one anyway, it gets the CPU instead.

The last resort is a function mode, which sees every call into torch and slows each by some microseconds. It begins
once the program has passed a device by name, since it might then pass one anywhere.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import operator
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

_GONE = re.compile(r"(?:mps|cuda|xpu|hip)(?::\d+)?")
_TYPE_THERE = re.compile(r"torch\.(?:cuda|mps)\.(\w+Tensor)")
"""How older programs name a device: ``torch.cuda.FloatTensor``."""
_ONLY_COMPARE = frozenset(("torch.amp.grad_scaler",))
"""Modules of torch that name a device only to compare: nothing is on it, and the program did not name it."""
_ARGUMENTS = (
    *(f"Tensor.{name}" for name in ("to", "new_zeros", "new_ones", "new_full", "new_empty", "new_tensor")),
    *("nn.Module.to", "nn.Module.to_empty", "set_default_device", "autocast.__init__"),
    *("set_default_tensor_type", "Tensor.type"),
)
_RETURNS_ITSELF = ("Tensor.cuda", "nn.Module.cuda", "nn.SyncBatchNorm.convert_sync_batchnorm")
"""The last one makes layers that DistributedDataParallel refuses on the CPU."""
_NOTHING_TO_DO = {
    "cuda": ("set_device", "synchronize", "empty_cache", "reset_peak_memory_stats", "manual_seed", "manual_seed_all"),
    "mps": ("synchronize", "empty_cache", "manual_seed", "set_per_process_memory_fraction"),
}
_TOLD_OF_THE_GPU: dict[str, Any] = {
    "get_device_name": "CPU",
    "get_device_capability": (0, 0),
    "get_device_properties": SimpleNamespace(name="CPU", total_memory=0, major=0, minor=0, multi_processor_count=0),
    "mem_get_info": (0, 0),
    "current_device": 0,
}
_NOTHING_HELD = ("current_allocated_memory", "driver_allocated_memory")


def force_cpu(torch: Any, tell: Callable[[str], None]) -> None:
    """Make torch answer that there is no accelerator, and use the CPU where the program names one.

    All public checks for MPS rest on ``torch._C._mps_is_available``, but some cache their first answer. The checks
    whether it was built in, and which accelerator there is, are replaced too.

    Args:
        tell: called with a sentence, once for each measure that was needed.
    """
    torch._C._mps_is_available = lambda: False
    available = torch.backends.mps.is_available
    if hasattr(available, "cache_clear"):
        available.cache_clear()
    from .insistence import answering  # analyses code: not needed in every program

    folder = Path(torch.__file__).parent
    for module, name, hidden, there in (
        (torch.backends.mps, "is_available", False, True),
        (torch.backends.mps, "is_built", False, True),
        (torch.cuda, "is_available", False, True),
        (torch.cuda, "device_count", 0, 1),
    ):
        setattr(module, name, answering(getattr(module, name), hidden, there, folder, tell))
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None and hasattr(accelerator, "current_accelerator"):
        accelerator.current_accelerator = lambda check_available=False: None
        accelerator.is_available = lambda: False
    if hasattr(torch, "nn"):
        _Named(torch, tell).take_over()


def _always(value: Any, path: str, original: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: value


class _Named:
    """Gives a program the CPU where it names a device that is hidden from it."""

    def __init__(self, torch: Any, tell: Callable[[str], None]) -> None:
        self._torch = torch
        self._tell = tell
        self._device = torch.device
        self._told: set[str] = set()
        self._mode: Any = None

    def take_over(self) -> None:
        """Replace every function of torch that takes or describes a device."""
        torch = self._torch
        with contextlib.suppress(ImportError):
            importlib.import_module("torch.utils._device")  # torch loads it late
        makers: Any = getattr(getattr(torch.utils, "_device", None), "_device_constructors", tuple)
        named = [name for name in (str(one.__name__) for one in makers()) if hasattr(torch, name)]
        for path in (*_ARGUMENTS, *named):
            self._replace(path, self._with_cpu)
        for path in _RETURNS_ITSELF:
            self._replace(path, self._itself)
        for module, names in _NOTHING_TO_DO.items():
            for name in names:
                self._replace(f"{module}.{name}", lambda path, original: lambda *args, **kwargs: None)
        for name in _NOTHING_HELD:
            self._replace(f"mps.{name}", lambda path, original: lambda: 0)
        for name, value in _TOLD_OF_THE_GPU.items():
            self._replace(f"cuda.{name}", functools.partial(_always, value))
        for name in [name for name in vars(torch.cuda) if name.endswith("Tensor") and hasattr(torch, name)]:
            setattr(torch.cuda, name, getattr(torch, name))
        self._replace("serialization.load", self._loaded)
        torch.load = torch.serialization.load
        self._replace("nn.parallel.DistributedDataParallel.__init__", self._without_devices)
        self._replace("distributed.init_process_group", self._by_gloo)
        for name in ("device", "Generator"):
            setattr(torch, name, self._stand_in(getattr(torch, name)))

    def moved(self, value: Any) -> Any:
        """Return the value, or the CPU if it names a hidden device."""
        if isinstance(value, str):
            kind = _TYPE_THERE.fullmatch(value)
            return f"torch.{kind[1]}" if kind else "cpu" if _GONE.fullmatch(value) else value
        return self._device("cpu") if isinstance(value, self._device) and value.type in ("mps", "cuda") else value

    def _replace(self, path: str, make: Callable[[str, Any], Any]) -> None:
        folder, _, name = path.rpartition(".")
        owner = functools.reduce(getattr, folder.split("."), self._torch) if folder else self._torch
        if hasattr(owner, name):
            original = getattr(owner, name)
            setattr(owner, name, functools.update_wrapper(make(path, original), original, updated=()))

    def _with_cpu(self, path: str, original: Any) -> Any:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            cpu = [self.moved(value) for value in args]
            named = {key: self.moved(value) for key, value in kwargs.items()}
            if path.endswith(".to") and len(cpu) > 1 and type(cpu[1]) is int:
                cpu[1] = "cpu"
            if any(map(operator.is_not, (*cpu, *named.values()), (*args, *kwargs.values()))):
                self._say(path)
                self._begin_mode()
            return original(*cpu, **named)

        return wrapped

    def _itself(self, path: str, original: Any) -> Any:
        def wrapped(one: Any, *args: Any, **kwargs: Any) -> Any:
            self._say(path)
            return one

        return wrapped

    def _loaded(self, path: str, original: Any) -> Any:
        def wrapped(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
            return original(f, "cpu", *args, **kwargs)

        return wrapped

    def _without_devices(self, path: str, original: Any) -> Any:
        def wrapped(
            one: Any, module: Any, device_ids: Any = None, output_device: Any = None, *args: Any, **kw: Any
        ) -> Any:
            return original(one, module, None, None, *args, **kw)

        return wrapped

    def _by_gloo(self, path: str, original: Any) -> Any:
        def wrapped(backend: Any = None, *args: Any, **kwargs: Any) -> Any:
            if "nccl" in str(backend):
                self._say(path)
            kwargs.pop("device_id", None)
            return original("gloo" if backend is None or "nccl" in str(backend) else backend, *args, **kwargs)

        return wrapped

    def _stand_in(self, real: Any) -> Any:
        """Return a type of that name which creates the real one's objects, on the CPU if a hidden device is named."""

        class Kind(type):
            def __instancecheck__(cls, one: Any) -> bool:
                return isinstance(one, real)

        def made(cls: Any, *args: Any, **kwargs: Any) -> Any:
            cpu = ["cpu" if type(value) is int else self.moved(value) for value in args][:1]  # an index may follow
            named = {key: self.moved(value) for key, value in kwargs.items()}
            if cpu != list(args) or named != kwargs:
                if sys._getframe(1).f_globals.get("__name__") in _ONLY_COMPARE:
                    return real(*args, **kwargs)
                self._say(f'{real.__name__}("{(*args, *kwargs.values())[0]}")')
            return real(*cpu, **named)

        return Kind(real.__name__, (), {"__new__": made, "__module__": "torch", "__doc__": real.__doc__})

    def _begin_mode(self) -> None:
        if self._mode is None:
            moved = self.moved

            class Mode(self._torch.overrides.TorchFunctionMode):  # type: ignore[name-defined,misc]
                def __torch_function__(self, call: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                    named = {name: moved(value) for name, value in (kwargs or {}).items()}
                    return call(*(moved(value) for value in args), **named)

            self._mode = Mode()
            self._mode.__enter__()
            self._tell("the program names its device, so every call into torch is looked at from now on")

    def _say(self, path: str) -> None:
        if path not in self._told:
            self._told.add(path)
            self._tell(f"the program names a device that is hidden from it: {path} was given the CPU")
