"""A stand-in for the MPS device, for tests on machines that have none: "mps" tensors live on the CPU.

``install()`` patches an imported torch: ``torch.backends.mps.is_available()`` is true, every ``"mps"`` device argument
means the CPU, and the counters of ``torch.mps`` follow the tensors that were moved there. ``MPSTUI_STANDIN`` tells it
what goes wrong, and when:

    oom@N        from optimizer step N on, every backward raises the real out-of-memory text
    oom-once@N   only the first backward of step N does
    oom-above@B  whatever holds more than B samples does (B counts the first dimension of a network's input)
    abort@N      the text of a failed Metal assertion on stderr, then abort()
    hang@N       backward never returns
    nan@N        layers give NaN from step N on
    kill@N       SIGKILL
    wrong@K      the K-th layer of every pass gives its result with channels shifted by one, and nobody is told
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.overrides import TorchFunctionMode

OUT_OF_MEMORY = (
    "MPS backend out of memory (MPS allocated: 17.92 GiB, other allocations: 384.00 MiB, max allowed: 18.13 GiB). "
    "Tried to allocate 256.00 MiB on private pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit "
    "for memory allocations (may cause system failure)."
)
METAL_ASSERTION = (
    "/AppleInternal/Library/BuildRoots/4ff29661-3588-11ef-9513-e2437461156c/Library/Caches/com.apple.xbs/Sources/"
    "MetalPerformanceShaders/MPSCore/Types/MPSNDArray.mm:891: failed assertion "
    "`[MPSNDArray, initWithBuffer:offset:descriptor:] Error: buffer is not large enough. Must be 25165824 bytes'\n"
)
RECOMMENDED_BYTES = 21_474_836_480
_LAYERS = {torch.nn.functional.linear, torch.nn.functional.conv1d, torch.nn.functional.conv2d}
_CACHE_BYTES_A_STEP = 1 << 20
_LARGEST_CACHE_BYTES = 256 << 20


class Counters:
    """Metal's memory of this process, in bytes: what live tensors hold, and what the driver keeps besides."""

    def __init__(self) -> None:
        self._cached = 0

    def allocated(self) -> int:
        """What live tensors hold, each storage counted once."""
        tensors = [item for item in gc.get_objects() if issubclass(type(item), torch.Tensor)]
        storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in tensors}
        return sum(storages.values())

    def driver(self) -> int:
        """What Metal holds for the process: live tensors and the cache."""
        return self.allocated() + self._cached

    def work(self) -> None:
        """A backward pass leaves buffers in the cache."""
        self._cached = min(_LARGEST_CACHE_BYTES, self._cached + _CACHE_BYTES_A_STEP)

    def empty_cache(self) -> None:
        """Keep only what live tensors hold."""
        self._cached = 0


class Fault:
    """What goes wrong, and at which optimizer step."""

    def __init__(self, text: str) -> None:
        self.kind, _, number = text.partition("@")
        self.at = int(number or 0)
        self.steps = 0
        self.device_was_used = False
        """Only a program that uses the device can be struck by it: a flip to the CPU escapes."""
        self._spent = False
        self._layers = 0

    def before_backward(self) -> None:
        """Strike if it is time; ``steps`` counts finished ones."""
        strike = {"oom": self._oom, "oom-once": self._oom_once, "abort": _abort, "hang": _hang, "kill": _kill}
        if self.kind in strike and self.device_was_used and self.steps + 1 >= self.at:
            strike[self.kind]()

    def after_layer(self, result: Any, inputs: tuple[Any, ...]) -> Any:
        """A layer's result, spoiled if it is time; validation is left alone."""
        if not (torch.is_grad_enabled() and self.device_was_used):
            return result
        self._layers += 1
        if self.kind == "wrong" and self._layers == self.at:
            return result.roll(1, dims=1)
        if self.kind == "oom-above" and len(inputs[0]) > self.at:
            self._oom()
        return result * float("nan") if self.kind == "nan" and self.steps + 1 >= self.at else result

    def count_step(self, *_: Any) -> None:
        """One optimizer step is done."""
        self.steps += 1
        self._layers = 0

    def _oom(self) -> None:
        raise RuntimeError(OUT_OF_MEMORY)

    def _oom_once(self) -> None:
        if not self._spent:
            self._spent = True
            self._oom()


class MpsOnCpu(TorchFunctionMode):
    """Every torch call that names the device "mps" gets the CPU."""

    def __init__(self, fault: Fault) -> None:
        super().__init__()
        self._fault = fault

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run one torch function with its devices replaced."""
        given = dict(kwargs or {})
        if any(_is_mps(value) for value in (*args, *given.values())):
            self._fault.device_was_used = True
            args = tuple(_on_cpu(value) for value in args)
            given = {name: _on_cpu(value) for name, value in given.items()}
        result = func(*args, **given)
        return self._fault.after_layer(result, args) if func in _LAYERS else result


def install(environ: Mapping[str, str] = os.environ) -> Counters:
    """Make this process believe that it has an MPS device; for good."""
    counters, fault = Counters(), Fault(environ.get("MPSTUI_STANDIN", ""))
    # What every public question goes back to; the answer given while torch was loading is forgotten.
    torch._C._has_mps = True
    torch._C._mps_is_available = lambda: True
    torch.backends.mps.is_available.cache_clear()
    torch.backends.mps.is_built = lambda: True
    torch.backends.mps.is_macos_or_newer = lambda major, minor: True  # type: ignore[assignment]
    torch.backends.mps.get_name = lambda: "Stand-in for MPS"  # type: ignore[assignment]
    _patch_counters(counters)
    _patch_backward(fault, counters)
    register_optimizer_step_post_hook(fault.count_step)
    MpsOnCpu(fault).__enter__()  # type: ignore[no-untyped-call]
    return counters


def _patch_counters(counters: Counters) -> None:
    replacements: dict[str, Callable[..., Any]] = {
        "current_allocated_memory": counters.allocated,
        "driver_allocated_memory": counters.driver,
        "recommended_max_memory": lambda: RECOMMENDED_BYTES,
        "empty_cache": counters.empty_cache,
        "synchronize": lambda: None,
        "get_rng_state": lambda: torch.get_rng_state(),
        "set_rng_state": lambda state: torch.set_rng_state(state),
        "manual_seed": lambda seed: None,
        "set_per_process_memory_fraction": lambda fraction: None,
    }
    for name, replacement in replacements.items():
        setattr(torch.mps, name, replacement)


def _patch_backward(fault: Fault, counters: Counters) -> None:
    original = torch.autograd.backward

    def backward(*args: Any, **kwargs: Any) -> None:
        fault.before_backward()
        counters.work()
        original(*args, **kwargs)

    torch.autograd.backward = backward


def _is_mps(value: Any) -> bool:
    if isinstance(value, torch.device):
        return value.type == "mps"
    return isinstance(value, str) and (value == "mps" or value.startswith("mps:"))


def _on_cpu(value: Any) -> Any:
    return torch.device("cpu") if _is_mps(value) else value


def _abort() -> None:
    sys.stderr.write(METAL_ASSERTION)
    sys.stderr.flush()
    os.abort()


def _hang() -> None:
    while True:
        time.sleep(3600)


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
