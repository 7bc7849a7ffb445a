"""The screen's services for runs on several machines: the only place where the screen knows about those."""

from __future__ import annotations

from ..core.hosts.joined import JoinedServices
from .services import Services


class ServicesOfHosts(JoinedServices, Services):
    """Everything the screen asks for, from the machine that each run is on."""
