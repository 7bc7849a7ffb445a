"""Crashes that a change of the launch prevents: the real texts, how the process ends, and what spares it.

Standard library only: also loaded by programs that never import torch.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Arguments = Mapping[str, str]
"""What follows ``--`` on the command line: name to value, a bare flag to ``true``."""
Environment = Mapping[str, str]
_UNSAFE = (
    "Weights only load failed. In PyTorch 2.6, we changed the default value of the `weights_only` argument in "
    "`torch.load` from `False` to `True`. WeightsUnpickler error: Unsupported global: GLOBAL net.Config was not an "
    "allowed global by default."
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A crash, and whether a launch is one that it spares."""

    text: str
    spares: Callable[[Arguments, Environment], bool]
    ends: int = 0
    """The signal that ends the process; 0: an exception does."""


def _on_cpu(arguments: Arguments, environ: Environment) -> bool:
    return arguments.get("device") == "cpu"


def _full_precision(arguments: Arguments, environ: Environment) -> bool:
    return arguments.get("precision") == "fp32"


def _no_workers(arguments: Arguments, environ: Environment) -> bool:
    return arguments.get("workers") == "0" and not {"persistent", "prefetch"} & set(arguments)


def _smaller_batch(arguments: Arguments, environ: Environment) -> bool:
    return (arguments.get("batch"), arguments.get("accumulate")) == ("16", "2")


def _capped(arguments: Arguments, environ: Environment) -> bool:
    return not {"PYTORCH_MPS_HIGH_WATERMARK_RATIO", "PYTORCH_MPS_LOW_WATERMARK_RATIO"} & set(environ)


def _sets(name: str, value: str) -> Callable[[Arguments, Environment], bool]:
    return lambda arguments, environ: environ.get(name) == value


REFUSALS: Mapping[str, Refusal] = {
    "mps_oom": Refusal(
        "MPS backend out of memory (MPS allocated: 17.92 GiB, other allocations: 384.00 MiB, max allowed: 18.13 GiB). "
        "Tried to allocate 256.00 MiB on private pool.",
        _smaller_batch,
    ),
    "killed_os": Refusal(
        "",
        lambda arguments, environ: _capped(arguments, environ) and _smaller_batch(arguments, environ),
        signal.SIGKILL,
    ),
    "mps_watermark_invalid": Refusal("invalid low watermark ratio 1.4", _capped),
    "mps_op_missing": Refusal(
        "The operator 'aten::linalg_eigh' is not currently implemented for the MPS device.",
        _sets("PYTORCH_ENABLE_MPS_FALLBACK", "1"),
    ),
    "mps_float64": Refusal(
        "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support it", _on_cpu
    ),
    "mps_bf16": Refusal("MPS BFloat16 is only supported on MacOS 14 or newer", _full_precision),
    "mpsgraph_llvm": Refusal("LLVM ERROR: Failed to infer result type(s).", _full_precision, signal.SIGABRT),
    "amp_fp16_not_mps": Refusal(
        "fp16 mixed precision requires a GPU (not 'mps').",
        lambda arguments, environ: environ.get("ACCELERATE_MIXED_PRECISION") == "no" and "fp16" not in arguments,
    ),
    "lightning_precision": Refusal(
        "Precision 'bf16-mixed' is invalid. Allowed precision values: ('64', '32', '16', 'bf16')",
        lambda arguments, environ: arguments.get("precision") == "bf16",
    ),
    "compile_mps": Refusal(
        "torch._inductor.exc.InductorError: SyntaxError: failed to compile", _sets("TORCH_COMPILE_DISABLE", "1")
    ),
    "dl_spawn_guard": Refusal(
        "An attempt has been made to start a new process before the\n"
        "current process has finished its bootstrapping phase.",
        _no_workers,
    ),
    "pin_memory_mps": Refusal(
        'Attempted to set the storage of a tensor on device "cpu" to a storage on different device "mps:0".',
        lambda arguments, environ: "pin" not in arguments,
    ),
    "omp_duplicate": Refusal(
        "OMP: Error #15: Initializing libomp.dylib, but found libiomp5.dylib already initialized.",
        _sets("OMP_NUM_THREADS", "1"),
        signal.SIGABRT,
    ),
    "lightning_ddp_mps": Refusal(
        "You set `strategy=ddp` but strategies from the DDP family are not supported on the MPS accelerator.",
        lambda arguments, environ: (arguments.get("devices"), arguments.get("strategy")) == ("1", "auto"),
    ),
    "dist_mps": Refusal(
        "ProcessGroupGloo::allreduce: invalid tensor type at index 0 (expected device=cpu, got device=mps:0)",
        lambda arguments, environ: _on_cpu(arguments, environ) and arguments.get("processes") == "1",
    ),
    "weights_only": Refusal(_UNSAFE, _sets("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")),
}
"""By the id of the cause that diagnosis should name."""


def arguments_of(words: list[str]) -> Arguments:
    """The ``--name value`` pairs and bare ``--flags`` of a command line."""
    named = [place for place, word in enumerate(words) if word.startswith("--")]
    values = {place: words[place + 1] for place in named if place + 1 < len(words) and place + 1 not in named}
    return {words[place][2:]: values.get(place, "true") for place in named}


def strike(name: str, words: list[str], environ: Environment) -> None:
    """End this process as the crash ``name`` does, unless its launch is one that is spared."""
    refusal = REFUSALS[name]
    if refusal.spares(arguments_of(words), environ):
        return
    if not refusal.ends:
        raise RuntimeError(refusal.text)
    sys.stderr.write(refusal.text + "\n" if refusal.text else "")
    sys.stderr.flush()
    os.kill(os.getpid(), refusal.ends)
