"""The screen's services where the runs are on several machines: the only place in which the screen knows that."""

from __future__ import annotations

from ..core.hosts.joined import JoinedServices
from .services import Services


class ServicesOfHosts(JoinedServices, Services):
    """Everything the screen asks for, asked of the machine that each run is on."""
