"""The only threads of the screen: they read, compare and post messages; none of them knows a widget.

Each is driven by demand: it posts a picture and then waits until that was drawn, so a slow terminal slows the reading
and never piles up messages. Each reports its own trouble as a message and goes on.
"""

from __future__ import annotations

from .courier import Courier
from .hints import HintPump
from .runs import Focus, RunPump
from .system import SystemPump
from .terminal import TerminalWatch

__all__ = ["Courier", "Focus", "HintPump", "RunPump", "SystemPump", "TerminalWatch"]
