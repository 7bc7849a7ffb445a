"""The errors that reach a person as a sentence."""

from __future__ import annotations


class UsageError(Exception):
    """The request cannot be met as given: one sentence that says what and where, and what to do. Exit code 2."""


class TrainingError(Exception):
    """The training cannot go on: one sentence that says why, and what to do. Exit code 1."""
