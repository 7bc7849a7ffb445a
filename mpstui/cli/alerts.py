"""`mpstui alerts`: who is told of a crash, a stall and a finish, and how; `alerts test` sends one now."""

from __future__ import annotations

import argparse
import shlex

from ..core.model.errors import OperationError
from ..core.settings import AlertSettings, load_settings
from .session import Session, print_json, say

HELP = "Show the [alerts] of settings.toml, or check it: a mistake exits with 2. `alerts test` sends one now."


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("word", nargs="?", choices=["test"], help="send a test through hook and webhook")
    parser.add_argument("--json", action="store_true", help="print it as JSON")


def run(args: argparse.Namespace) -> int:
    session = Session()
    alerts = load_settings(session.home).alerts
    if args.word == "test":
        return _test(session, alerts)
    if args.json:
        print_json({"path": str(session.home.settings), "exists": session.home.settings.exists(), **_shown(alerts)})
        return 0
    there = "" if session.home.settings.exists() else " (not there: these are the defaults, and nothing is run)"
    say(f"{session.home.settings}{there}")
    for name, value in _shown(alerts).items():
        say(f"  {name:<8} {_text(value)}")
    return 0


def _shown(alerts: AlertSettings) -> dict[str, object]:
    """The webhook's address may hold a token: only whether there is one."""
    return {
        "on": list(alerts.on),
        "when": alerts.when,
        "bell": alerts.bell,
        "notify": alerts.notify,
        "hook": list(alerts.hook),
        "webhook": bool(alerts.webhook),
    }


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return shlex.join(map(str, value)) or "none" if isinstance(value, list) else str(value)


def _test(session: Session, alerts: AlertSettings) -> int:
    from ..core.settings import send_test

    if not (alerts.hook or alerts.webhook):
        raise OperationError(
            "there is no hook and no webhook to test", f"set them in [alerts] of {session.home.settings}"
        )
    outcome = send_test(session.home)
    for line in outcome.splitlines():
        say(line)
    return 0 if outcome and "failed" not in outcome and "could not" not in outcome else 1
