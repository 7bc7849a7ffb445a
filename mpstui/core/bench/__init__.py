"""`mpstui bench`: what devices, bf16, compile and loaders are worth here, by running the trainers themselves."""

from __future__ import annotations
