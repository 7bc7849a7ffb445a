"""Sending signals so that a stranger never gets one: every target is checked to be who it was."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from typing import Protocol

from ..wire.liveness import ProcessIdentity, ProcessTable


class Signaller(Protocol):
    """Where signals go; tests hand in their own."""

    def send(self, target: ProcessIdentity, number: int) -> bool:
        """Signal one process if it is still that one; True when it was sent."""
        ...

    def send_group(self, group: int, proof: Iterable[ProcessIdentity], number: int) -> bool:
        """Signal a process group if one of ``proof`` is still a member of it; True when it was sent."""
        ...


class SystemSignaller:
    """Sends real signals."""

    def __init__(self, table: ProcessTable) -> None:
        self._table = table

    def send(self, target: ProcessIdentity, number: int) -> bool:
        """See :class:`Signaller`. On Linux a pidfd closes the gap between the check and the signal."""
        if target.pid <= 1 or target.pid == os.getpid():
            return False
        if hasattr(os, "pidfd_open"):
            return self._send_by_descriptor(target, number)
        return self._is(target) and _kill(target.pid, number)

    def send_group(self, group: int, proof: Iterable[ProcessIdentity], number: int) -> bool:
        """See :class:`Signaller`. A zombie is proof enough: it keeps the group's number from being used again."""
        if group <= 1 or group == os.getpgrp():
            return False
        for member in proof:
            found = self._table.find(member.pid)
            if found and found.start == member.start and found.group == group:
                return _kill(-group, number)
        return False

    def _is(self, target: ProcessIdentity) -> bool:
        found = self._table.find(target.pid)
        return found is not None and found.start == target.start

    def _send_by_descriptor(self, target: ProcessIdentity, number: int) -> bool:
        try:
            descriptor = os.pidfd_open(target.pid)
        except ProcessLookupError:
            return False
        except OSError:
            return self._is(target) and _kill(target.pid, number)  # kernel before 5.3, or forbidden by a sandbox
        try:
            if not self._is(target):
                return False
            signal.pidfd_send_signal(descriptor, number)
        except OSError:
            return False
        finally:
            os.close(descriptor)
        return True


def _kill(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number)
    except OSError:
        return False
    return True
