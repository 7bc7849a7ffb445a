"""Which names and values are nobody's business: they are neither written down nor shown."""

from __future__ import annotations

import re
from collections.abc import Mapping

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:.*TOKEN|.*SECRETS?|.*PASSWORDS?|PASSWD|PASSPHRASE|PASS|SSHPASS|(?<=_)PWD|PWD_HASH|PAT|API_?KEYS?"
    r"|.*ACCESS_?KEY(?:_ID)?|PRIVATE_?KEY|KEY|CREDENTIALS?|AUTH|COOKIE|SESSION_?ID|DSN|WEBHOOK(?:_URL)?)(?:_|$)",
    re.IGNORECASE,
)
_URL_PASSWORD = re.compile(r"(?<=://)[^/\s:@]*:[^/\s@]+(?=@)")
HIDDEN = "•••"


def is_secret(name: str) -> bool:
    """Whether a variable's name says that its value is nobody's business."""
    return _SECRET_NAME.search(name) is not None


def hides(name: str, value: str) -> bool:
    """Whether a variable's value may not be written: a secret by its name, or an address with a password in it."""
    return is_secret(name) or _URL_PASSWORD.search(value) is not None


def without_secrets(environment: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Split an environment: what may be written, and the sorted names of what may not."""
    shown = {name: value for name, value in environment.items() if not hides(name, value)}
    return shown, sorted(set(environment) - set(shown))


def masked(environment: Mapping[str, str]) -> dict[str, str]:
    """For the screen: every name, and dots in place of secret values and of passwords inside URLs."""
    return {
        name: HIDDEN if is_secret(name) else _URL_PASSWORD.sub(HIDDEN, value) for name, value in environment.items()
    }
