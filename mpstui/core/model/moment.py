"""A point in time that one machine records and another may read."""

from __future__ import annotations

from typing import Annotated

UNIX = "Unix seconds"
Moment = Annotated[float, UNIX]
"""A point in time by the clock of the machine that recorded it; read from another machine, it is converted to that
machine's clock."""
