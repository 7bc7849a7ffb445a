"""A point in time, told by one machine and read by another."""

from __future__ import annotations

from typing import Annotated

UNIX = "Unix seconds"
Moment = Annotated[float, UNIX]
"""A point in time by the clock of the machine that states it; seen from another one, it is converted to that clock."""
