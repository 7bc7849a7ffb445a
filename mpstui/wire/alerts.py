"""What both who checks the settings and who acts on them must agree on."""

from __future__ import annotations

EVENTS = ("crash", "stall", "finish")
"""What somebody can be told of."""
WHEN = ("always", "no_screen", "never")


def is_safe_address(url: str) -> bool:
    """Whether a webhook's address is https, or this very machine."""
    return url.startswith(("https://", "http://127.0.0.1:", "http://localhost:"))
