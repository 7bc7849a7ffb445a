"""The one error that reaches the user as a sentence."""

from __future__ import annotations


class UsageError(Exception):
    """Something was asked for wrongly; the command line exits with 2.

    The message is one sentence that says what is wrong and where (file, line, key); ``hint`` says what to do.
    """

    def __init__(self, sentence: str, hint: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.hint = hint


class OperationError(Exception):
    """Something asked for rightly could not be done; the command line exits with 1."""

    def __init__(self, sentence: str, hint: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.hint = hint
