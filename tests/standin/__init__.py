"""The stand-in for MPS: ``PYTHONPATH=tests/standin`` for a child process; tests only, never shipped."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parent
"""What goes in front of PYTHONPATH."""
