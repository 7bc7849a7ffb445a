"""Stand-ins for MPS and for torch's compiler: ``PYTHONPATH=tests/standin`` for a child process; never shipped."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parent
"""What goes in front of PYTHONPATH."""
WATCHED = {"MPSTUI_STANDIN_PAUSE": "0.02"}
"""The environment of a training that goes on until it is ended: fifty steps a second are enough to be watched."""
