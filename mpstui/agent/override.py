"""Taking the accelerators away from a program that was started again on the CPU."""

from __future__ import annotations

from typing import Any


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
