"""`mpstui bench`: what devices, bf16, compile and loaders gain here, measured by running the trainers themselves."""

from __future__ import annotations
