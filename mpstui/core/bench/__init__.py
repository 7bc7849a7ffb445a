"""`mpstui bench`: what devices, bf16, compile and loaders gain on this machine, measured with the real trainers."""

from __future__ import annotations
