"""Changes to arguments that several remedies share, by role; profiles map roles to their program's own names."""

from __future__ import annotations

from ..remedy import ArgumentChange

SMALLER_BATCH = (
    ArgumentChange("batch_size", "scale", 0.5),
    ArgumentChange("gradient_accumulation", "scale", 2, default=1),
)
# DataLoader refuses persistent_workers and prefetch_factor with zero workers.
NO_WORKERS = (
    ArgumentChange("workers", "set", 0),
    ArgumentChange("persistent_workers", "remove"),
    ArgumentChange("prefetch_factor", "remove"),
)
FULL_PRECISION = (ArgumentChange("precision", "set", "fp32"),)
EAGER = {"TORCH_COMPILE_DISABLE": "1"}
# Both names of the pair go: the allocator refuses a cap that lies below its soft limit.
DEFAULT_WATERMARKS = {"PYTORCH_MPS_HIGH_WATERMARK_RATIO": None, "PYTORCH_MPS_LOW_WATERMARK_RATIO": None}
