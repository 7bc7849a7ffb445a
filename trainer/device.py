"""The device a training runs on. Every call that differs between MPS, CUDA and CPU is in this file.

MPS rules that hold everywhere here: no ``non_blocking`` copies (they may silently deliver wrong data, pytorch#139550,
pytorch#189690), no pinned memory, and no tensor operation outside the training thread (pytorch#197805).
"""

from __future__ import annotations

import contextlib
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Protocol, TypeVar

import torch
from torch import nn

from mpstui.wire.heartbeat import DeviceReading, MemoryReading

from .allocator import keep_freed_memory
from .errors import UsageError

NAMES = ("auto", "mps", "cuda", "cpu")
_OUT_OF_MEMORY_TEXTS = ("out of memory", "Invalid buffer size")
T = TypeVar("T")


class Recording(Protocol):
    """The kernels that some work launched, recorded to be launched again as one graph."""

    def replay(self) -> None:
        """Launch the recorded kernels."""

    def reset(self) -> None:
        """Drop it and release its memory."""


class Device:
    """The CPU; also the base class of accelerators."""

    type: ClassVar[str] = "cpu"
    replays_kernels: ClassVar[bool] = False
    """Whether the kernels of a step can be recorded (:meth:`record`) and launched as one."""
    copies_quickly: ClassVar[bool] = False
    """Whether it pays to copy a checkpoint (:meth:`copied`) and write the copy while the training goes on."""

    def __init__(self, index: int = 0) -> None:
        self.torch = torch.device(self.type) if self.type != "cuda" else torch.device("cuda", index)

    @property
    def name(self) -> str:
        """The device's name, as people know it."""
        return platform.processor() or platform.machine() or "CPU"

    def reading(self, precision: str) -> DeviceReading:
        """The device as a heartbeat reports it."""
        return DeviceReading(self.type, self.name, precision)

    def put(self, batch: T) -> T:
        """Return a (nested) batch with its tensors on this device."""
        moved: T = _map_tensors(batch, self._copy)
        return moved

    def copied(self, state: T) -> T:
        """Return the state with all tensors copied to host memory; the copies are complete on return."""
        copies: T = _map_tensors(state, lambda tensor: tensor.detach().cpu().clone())
        return copies

    def place(self, model: nn.Module) -> nn.Module:
        """Return the model on this device; on CPU and CUDA in channels-last format if it has convolutions."""
        if self.type == "cpu":
            keep_freed_memory(os.environ)
        if self.type != "mps" and any(isinstance(module, nn.Conv2d) for module in model.modules()):
            return model.to(device=self.torch, memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]
        return model.to(self.torch)

    def memory(self) -> MemoryReading:
        """The device's own counters in bytes; all unknown on the CPU, which uses the process's memory."""
        return MemoryReading()

    def empty_cache(self) -> None:
        """Return cached memory to the system; waits for the device, so do not call it at every step."""

    def synchronize(self) -> None:
        """Wait until all queued work is done."""

    def limit_to(self, fraction: float) -> None:
        """Limit this process to a fraction of the device's recommended maximum."""

    def rng_state(self) -> dict[str, torch.Tensor]:
        """States of the device's random generators, as CPU tensors."""
        return {}

    def set_rng_state(self, states: Mapping[str, Any]) -> None:
        """Restore what :meth:`rng_state` returned; states of other kinds of devices are ignored."""

    def bf16_refusal(self) -> str | None:
        """Why bfloat16 autocast is not available here; None when it is."""
        return None

    def fp16_refusal(self) -> str | None:
        """Why float16 with loss scaling is not available here; None when it is."""
        return "float16 training needs a GPU"

    def compile_refusal(self) -> str | None:
        """Why torch.compile should not be tried here; None when it may be."""
        return None

    def fuses(self, optimizer: str) -> bool:
        """Whether torch has a fused kernel for this optimizer on this device."""
        return optimizer in {"sgd", "adam", "adamw"}

    def distributed_backend(self) -> str:
        """The process-group backend that carries this device's tensors."""
        return "gloo"

    def fill(self, kept: torch.Tensor, values: torch.Tensor) -> None:
        """Copy values from the CPU, or from this device, into an existing tensor."""
        kept.copy_(values)

    def aside(self) -> contextlib.AbstractContextManager[object]:
        """Switch to the stream on which steps are recorded, after all earlier work.

        What belongs to a step must be created there: autograd binds a weight's gradient node to the stream of its first
        use, and a recorded step must not touch any other stream.
        """
        return contextlib.nullcontext()

    def rarely(self) -> contextlib.AbstractContextManager[object]:
        """A context for work whose shapes are too rare to be worth searching for the fastest kernels."""
        return contextlib.nullcontext()

    def record(self, work: Callable[[], None]) -> Recording:
        """Record the kernels that some work launches, without running them. Only if ``replays_kernels``.

        Raises:
            RuntimeError: the work waits for the device, or memory ran out.
        """
        raise NotImplementedError

    def _copy(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(self.torch)


class CudaDevice(Device):
    """One NVIDIA (or ROCm) GPU."""

    type = "cuda"
    replays_kernels = True
    copies_quickly = True

    def __init__(self, index: int = 0) -> None:
        super().__init__(index)
        self._pool: Any = None
        self._stream: torch.cuda.Stream | None = None

    @property
    def name(self) -> str:
        """The GPU's model."""
        return torch.cuda.get_device_name(self.torch)

    def memory(self) -> MemoryReading:
        """The caching allocator's counters and the size of the device."""
        return MemoryReading(
            allocated=torch.cuda.memory_allocated(self.torch),
            driver=torch.cuda.memory_reserved(self.torch),
            limit=torch.cuda.get_device_properties(self.torch).total_memory,
        )

    def empty_cache(self) -> None:
        """Give cached blocks back to the driver."""
        torch.cuda.empty_cache()

    def synchronize(self) -> None:
        """Wait for the GPU."""
        torch.cuda.synchronize(self.torch)

    def limit_to(self, fraction: float) -> None:
        """Cap the caching allocator."""
        torch.cuda.set_per_process_memory_fraction(fraction, self.torch)

    def rng_state(self) -> dict[str, torch.Tensor]:
        """The state of this GPU's generator."""
        return {"cuda": torch.cuda.get_rng_state(self.torch)}

    def set_rng_state(self, states: Mapping[str, Any]) -> None:
        """Put back the state of a CUDA generator."""
        if "cuda" in states:
            torch.cuda.set_rng_state(states["cuda"], self.torch)

    def place(self, model: nn.Module) -> nn.Module:
        """Return the model on this GPU; cuDNN times its kernels once per shape for the fastest (a ResNet gains 5 %)."""
        torch.backends.cudnn.benchmark = not torch.are_deterministic_algorithms_enabled()
        return super().place(model)

    def bf16_refusal(self) -> str | None:
        """Only worth it from Ampere on."""
        if torch.cuda.get_device_capability(self.torch) >= (8, 0):
            return None
        return f"bfloat16 needs compute capability 8.0, {self.name} has less"

    def fp16_refusal(self) -> str | None:
        """Always available."""
        return None

    def distributed_backend(self) -> str:
        """NCCL."""
        return "nccl"

    def copied(self, state: T) -> T:
        """Copy into pinned memory, which torch caches for the next time."""
        copies: T = _map_tensors(state, _copied_aside)
        torch.cuda.synchronize(self.torch)
        return copies

    def fill(self, kept: torch.Tensor, values: torch.Tensor) -> None:
        """Copy through pinned memory without waiting; torch keeps that memory until the copy is done."""
        pinned = values.pin_memory() if values.device.type == "cpu" else values
        kept.copy_(pinned, non_blocking=True)

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """A separate stream."""
        stream, usual = self._recording_stream(), torch.cuda.current_stream(self.torch)
        stream.wait_stream(usual)
        try:
            with torch.cuda.stream(stream):
                yield
        finally:
            usual.wait_stream(stream)

    @contextlib.contextmanager
    def rarely(self) -> Iterator[None]:
        """Let cuDNN use its heuristics: timing its kernels for one more shape takes a ResNet-18 about a second."""
        usual, torch.backends.cudnn.benchmark = torch.backends.cudnn.benchmark, False
        try:
            yield
        finally:
            torch.backends.cudnn.benchmark = usual

    def record(self, work: Callable[[], None]) -> Recording:
        """Record a CUDA graph. All share one memory pool: they run in turn and never read each other's memory."""
        graph, stream = torch.cuda.CUDAGraph(), self._recording_stream()
        # CUDA calls of other threads must not end the recording.
        with torch.cuda.graph(graph, pool=self._pool, stream=stream, capture_error_mode="thread_local"):
            work()
        self._pool = graph.pool()
        return graph

    def _recording_stream(self) -> torch.cuda.Stream:
        if self._stream is None:
            self._stream = torch.cuda.Stream(self.torch)  # type: ignore[no-untyped-call]
        return self._stream

    def _copy(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.device.type == "cpu":
            return tensor.pin_memory().to(self.torch, non_blocking=True)
        return tensor.to(self.torch)


class MpsDevice(Device):
    """The GPU of an Apple silicon Mac."""

    type = "mps"

    @property
    def name(self) -> str:
        """The chip's name, where torch (2.9+) knows it."""
        get_name = getattr(torch.backends.mps, "get_name", None)
        return str(get_name()) if get_name else "Apple GPU"

    def memory(self) -> MemoryReading:
        """Metal's counters for this process; reading them touches no tensor."""
        recommended = getattr(torch.mps, "recommended_max_memory", None)  # torch 2.5+
        return MemoryReading(
            allocated=torch.mps.current_allocated_memory(),
            driver=torch.mps.driver_allocated_memory(),
            limit=recommended() if recommended else None,
        )

    def empty_cache(self) -> None:
        """Give cached buffers back to Metal; commits and waits."""
        torch.mps.empty_cache()

    def synchronize(self) -> None:
        """Wait for the command queue."""
        torch.mps.synchronize()

    def limit_to(self, fraction: float) -> None:
        """Set the same hard cap as PYTORCH_MPS_HIGH_WATERMARK_RATIO."""
        torch.mps.set_per_process_memory_fraction(fraction)

    def rng_state(self) -> dict[str, torch.Tensor]:
        """The state of the MPS generator."""
        return {"mps": torch.mps.get_rng_state()}

    def set_rng_state(self, states: Mapping[str, Any]) -> None:
        """Put back the state of an MPS generator."""
        if "mps" in states:
            torch.mps.set_rng_state(states["mps"])

    def bf16_refusal(self) -> str | None:
        """autocast("mps") supports bfloat16 from torch 2.6 and macOS 14 on."""
        newer = getattr(torch.backends.mps, "is_macos_or_newer", None)
        return None if newer is None or newer(14, 0) else "bfloat16 on MPS needs macOS 14"

    def fp16_refusal(self) -> str | None:
        """Before torch 2.8 GradScaler.unscale_ used float64, which MPS lacks."""
        return (
            None
            if torch_version() >= (2, 8)
            else f"float16 loss scaling on MPS needs torch 2.8, this is {torch.__version__}"
        )

    def compile_refusal(self) -> str | None:
        """Inductor has a usable Metal backend from torch 2.8 on."""
        return (
            None if torch_version() >= (2, 8) else f"torch.compile on MPS needs torch 2.8, this is {torch.__version__}"
        )

    def fuses(self, optimizer: str) -> bool:
        """The fused MPS kernels do not support ``found_inf``, which the guard against non-finite steps needs."""
        return False


def choose(name: str, *, local_rank: int = 0) -> tuple[Device, str | None]:
    """Return the requested device, and a sentence if ``auto`` had to skip one.

    Raises:
        UsageError: this machine or this torch lacks the device; says what to do.
    """
    if name == "auto":
        return _best(local_rank)
    refusal = _refusal(name)
    if refusal:
        raise UsageError(f"--device {name}: {refusal}; use --device cpu or --device auto")
    return _make(name, local_rank), None


def is_out_of_memory(error: BaseException) -> bool:
    """True if an exception means that a device, or the system, ran out of memory."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(text in str(error) for text in _OUT_OF_MEMORY_TEXTS)


def torch_version() -> tuple[int, int]:
    """Major and minor version of torch."""
    major, minor = torch.__version__.split(".")[:2]
    return int(major), int(minor)


def _best(local_rank: int) -> tuple[Device, str | None]:
    for name in ("cuda", "mps"):
        if _refusal(name) is None:
            failure = _try_out(_make(name, local_rank))
            if failure is None:
                return _make(name, local_rank), None
            return Device(), f"{name} is there but failed a first tensor ({failure}); training on the CPU"
    return Device(), None


def _make(name: str, local_rank: int) -> Device:
    if name == "cuda":
        torch.cuda.set_device(local_rank)
        return CudaDevice(local_rank)
    return MpsDevice() if name == "mps" else Device()


def _refusal(name: str) -> str | None:
    if name == "cuda" and not torch.cuda.is_available():
        return "torch sees no CUDA device here"
    if name == "mps" and not torch.backends.mps.is_available():
        system = "macOS" if sys.platform == "darwin" else sys.platform
        return f"torch {torch.__version__} sees no MPS device on this machine ({system})"
    return None


def _try_out(device: Device) -> str | None:
    try:
        total = torch.ones(8, device=device.torch).sum().item()
    except RuntimeError as error:
        return str(error).partition("\n")[0]
    return None if total == 8 else f"8 ones summed to {total}"


def _copied_aside(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(tensor, device="cpu", pin_memory=tensor.is_cuda).copy_(tensor.detach(), non_blocking=True)


def _map_tensors(value: Any, change: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: _map_tensors(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_map_tensors(item, change) for item in value)
    return value
