"""Textual's terminal driver, except that its reader sleeps until something is typed.

Textual's own polls ten times a second: that takes 0.12 % of a core, more than everything else that an idle list costs,
and delays leaving by up to 0.2 s.
"""

from __future__ import annotations

import os
import select
import threading
import time
from codecs import getincrementaldecoder
from typing import Any

from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver

_TICK_SECONDS, _TICKING_SECONDS = 0.1, 5.0
"""Input held back as the possible beginning of a key or an answer is checked at this interval, for this long after the
last read; nothing is held back for longer.
"""


class _Leaving(threading.Event):
    """Wakes the reader when it is set."""

    def __init__(self) -> None:
        super().__init__()
        self.woken, self._wake = os.pipe()

    def set(self) -> None:
        super().set()
        os.write(self._wake, b"\0")


class PatientDriver(LinuxDriver):
    """The driver; see the top of this module."""

    parser: type[XTermParser] = XTermParser
    """Turns input into messages."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.exit_event: _Leaving = _Leaving()

    def run_input_thread(self) -> None:
        """Turn input into messages until the driver stops."""
        parser = self.parser(self._debug)
        decode = getincrementaldecoder("utf-8")().decode
        terminal, woken, ticks_until = self.fileno, self.exit_event.woken, 0.0
        while not self.exit_event.is_set():
            pause = _TICK_SECONDS if time.monotonic() < ticks_until else None
            ready = select.select([terminal, woken], [], [], pause)[0]
            if woken in ready:
                os.read(woken, 1 << 10)
            if terminal in ready:
                read = os.read(terminal, 1 << 12)
                ticks_until = time.monotonic() + _TICKING_SECONDS
                if not read:  # the end of a pipe stays readable for ever
                    self.exit_event.wait(_TICK_SECONDS)
                text = decode(read)
                for message in parser.feed(text) if text else ():
                    self.process_message(message)
            for message in parser.tick():
                self.process_message(message)
