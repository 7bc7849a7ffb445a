"""Our CUDA kernels, in Triton, for what takes torch too many passes over memory or too many launches."""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Sequence
from types import ModuleType

import torch


@functools.cache
def kernels(module: str) -> ModuleType | None:
    """A module of kernels, such as ``models.batch_norm_kernels``; None if they do not work here, as is reported once.

    Imported only when needed, and tried out: Triton comes with torch for CUDA on Linux and needs a C compiler. Such a
    module runs some of its kernels in ``try_out``.
    """
    try:
        found = importlib.import_module(f"{__package__}.{module}")
        found.try_out()
    except Exception as error:  # noqa: BLE001 - whatever is missing, torch's own kernels work
        what = module.rpartition(".")[2].removesuffix("_kernels").replace("_", " ")
        reason = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        warnings.warn(f"{what} by torch's own kernels, which are slower: {reason}", stacklevel=2)
        return None
    return found


def kernels_on(module: str, weights: Sequence[torch.Tensor], lr: float | torch.Tensor) -> ModuleType | None:
    """An optimizer's kernels, if they work: for contiguous float32 weights on CUDA and a learning rate in a tensor."""
    if not (weights and weights[0].is_cuda and isinstance(lr, torch.Tensor) and all(map(_is_whole, weights))):
        return None
    return kernels(module)


def _is_whole(weight: torch.Tensor) -> bool:
    """True if it is float32 and fills one block of memory, channels-last or not."""
    is_last = weight.ndim == 4 and weight.is_contiguous(memory_format=torch.channels_last)
    return weight.dtype == torch.float32 and (weight.is_contiguous() or is_last)
