"""Recognise secret names and values, which are neither written down nor shown.

Secrets are recognised by name (of a variable, an option, a part of a URL), by shape (a token of a known service, a URL
with a password) and by place (after ``Authorization:``, in the query of a URL). What looks like any other word, such as
a password given as a bare argument, is not recognised.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

HIDDEN = "•••"
_WORDS = (
    r".*TOKENS?|.*SECRETS?|.*PASSWORDS?|PASSWD|PASSPHRASE|PASSCODE|PASS|SSHPASS|(?<=_)PWD|PWD_HASH|PW|PAT|JWT|BEARER"
    r"|API_?KEYS?|.*ACCESS_?KEYS?(?:_ID)?|PRIVATE_?KEYS?|ACCOUNT_?KEY|KEYS?|CREDENTIALS?|CREDS|AUTH|AUTHORIZATION"
    r"|SIGNATURE|COOKIE|SESSION_?ID|DSN|CONNECTION_?STRING|WEBHOOK(?:_URL)?"
)
_SECRET_NAME = re.compile(rf"(?:^|_)(?:{_WORDS})(?:_|$)", re.IGNORECASE)
_AMOUNT = re.compile(r"(?:^|_)(?:MAX|MIN|NUM|N|NEW|TOTAL)(?:_\w+)?_TOKENS?$", re.IGNORECASE)
_COUNT = re.compile(r"\d{1,7}(?:\.\d*)?|true|false|yes|no|on|off|none|null|", re.IGNORECASE)
"""Values that are no secret, as of ``--max-tokens``."""
_COUNTED_NAME = re.compile(r"(?:^|_)(?:\w*TOKENS?|KEYS?)(?:_|$)", re.IGNORECASE)
_TOKENS = (
    re.compile(r"(?<![\w-])(?:sk|pk|rk)-[\w-]{16,}"),
    re.compile(r"(?<![\w-])(?:hf_|gh[pousr]_|github_pat_|glpat-|xox[abprs]-|npm_|pypi-)[\w-]{10,}"),
    re.compile(r"(?<![A-Z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])"),
    re.compile(r"(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"),  # a JSON web token
)
"""Tokens of known services, which look like nothing else."""
_SHAPES = (
    re.compile(r"(?<=://)[^/\s:@]*:[^/\s@]+(?=@)"),  # user:password of an address
    re.compile(r"https?://([^/\s:@]{8,})@"),  # a token in the user's place
    re.compile(r"(?i)[?&][\w-]*(?:key|token|secret|password|passwd|pwd|sig|signature|auth)=([^&\s;#]+)"),
    re.compile(r"://\S{1,200}?/t/([\w-]{8,})"),
    re.compile(r"(?i)(?<![\w-])(?:account_?key|shared_?access_?key|password|pwd)=([^;\s]+)"),
    re.compile(r"(?i)\bauthorization[\"']?\s*[:=]\s*[\"']?(?:\w+\s+)?([^\s\"',;]{6,})"),
    re.compile(r"(?i)\bbearer\s+([\w.~+/=-]{8,})"),
    *_TOKENS,
)
_MIXED = re.compile(r"\d.*[A-Za-z]|[A-Za-z].*\d")
_OPTION = re.compile(r"--?([A-Za-z][\w.-]*)|\+{0,2}([A-Za-z][\w.-]*)(?==)")


def is_secret(name: str) -> bool:
    """True if the name of a variable or option says that its value is secret."""
    name = name.replace("-", "_").replace(".", "_")
    return _SECRET_NAME.search(name) is not None and not _AMOUNT.search(name)


def hides(name: str, value: str) -> bool:
    """True if a value must not be written, being secret by name or by shape. A number of tokens is no secret."""
    return _is_named(name, value) or masked_text(value) != value


def without_secrets(environment: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Split an environment into what may be written and the sorted names of what must not."""
    shown = {name: value for name, value in environment.items() if not hides(name, value)}
    return shown, sorted(set(environment) - set(shown))


def masked(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment to show, with dots in place of secret values and of secrets inside values."""
    return {name: HIDDEN if _is_named(name, value) else masked_text(value) for name, value in environment.items()}


def masked_text(text: str) -> str:
    """Return a text with dots in place of whatever has the shape of a secret."""
    for shape in _SHAPES:
        text = shape.sub(_dots, text)
    return text


def token_line(text: str) -> int | None:
    """Return the number of the first line with a private key or a known service's token; None if there is none."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("-----BEGIN ") and "PRIVATE KEY" in line:
            return number
        for shape in _TOKENS:
            found = shape.search(line)
            # Names of models and packages may begin like tokens, but have no long part of mixed letters and digits.
            if found and any(len(part) >= 10 and _MIXED.search(part) for part in re.split(r"[-_.]", found[0])):
                return number
    return None


def masked_words(words: Sequence[str]) -> tuple[str, ...]:
    """Return a command with dots in place of its secrets: ``--api-key X``, ``--token=X``, ``key=X``, known shapes."""
    shown: list[str] = []
    option = ""
    for word in words:
        found = _OPTION.match(word)
        name = (found[1] or found[2]) if found else ""
        head, equals, value = word.partition("=")
        if option and not word.startswith("-") and _is_named(option, word):
            shown.append(HIDDEN)
        elif name and equals and _is_named(head.lstrip("-+"), value):
            shown.append(f"{head}={HIDDEN}")
        else:
            shown.append(masked_text(word))
        option = name if word.startswith("-") and not equals else ""
    return tuple(shown)


def _is_named(name: str, value: str) -> bool:
    if not is_secret(name):
        return False
    return not (_COUNT.fullmatch(value) and _COUNTED_NAME.search(name.replace("-", "_").replace(".", "_")))


def _dots(found: re.Match[str]) -> str:
    """Return the match with its group hidden, or all of it if it has none."""
    if not found.re.groups:
        return HIDDEN
    start, end = (place - found.start() for place in found.span(1))
    return found[0][:start] + HIDDEN + found[0][end:]
