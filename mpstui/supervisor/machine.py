"""What a supervisor needs of the machine, as parameters."""

from __future__ import annotations

from typing import NamedTuple

from ..wire.liveness import ProcessTable, boot_id, system_process_table
from .clock import Clock
from .signals import Signaller, SystemSignaller


class Machine(NamedTuple):
    """Clocks, the process table, signals and this boot's id."""

    clock: Clock
    table: ProcessTable
    signaller: Signaller
    boot_id: str


def this_machine() -> Machine:
    """The machine this runs on."""
    table = system_process_table()
    return Machine(Clock(), table, SystemSignaller(table), boot_id())
