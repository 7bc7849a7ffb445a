"""`mpstui doctor` and `mpstui alerts`: what this machine has, and where alerts about crashes, stalls and ends go."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from ..core.alerts import send_test
from ..core.model.errors import OperationError
from ..core.settings import load_settings
from .session import Session, print_json, say

MARKS = {"ok": "✓", "note": "·", "warning": "!", "problem": "✗"}


def configure_doctor(parser: argparse.ArgumentParser) -> None:
    parser.epilog = """\
Each device is checked by computing on it.
exit status: 0 nothing is wrong; 1 something is. Examples:
  mpstui doctor --train
  mpstui doctor --python ~/envs/mine/bin/python"""
    parser.add_argument(
        "--train", action="store_true", help="also train a tiny network on each device; its loss must fall"
    )
    parser.add_argument("--python", metavar="PATH", help="check the torch of this interpreter (default: mpstui's own)")
    parser.add_argument("--json", action="store_true", help="print facts and results as JSON")


def run_doctor(args: argparse.Namespace) -> int:
    from ..core.doctor import examine

    session = Session()
    python = str(Path(args.python).expanduser()) if args.python else sys.executable
    report = examine(session.home, session.environ, python=python, train=args.train)
    if args.json:
        print_json(report.as_json())
        return 0 if report.ok else 1
    for result in report.results:
        say(f"{MARKS[result.status]} {result.text}")
        if result.advice:
            say(f"    {result.advice}")
    return 0 if report.ok else 1


def configure_alerts(parser: argparse.ArgumentParser) -> None:
    parser.epilog = """\
Shows [alerts] of settings.toml and checks it: a mistake exits with 2. Example:
  mpstui alerts test"""
    parser.add_argument("word", nargs="?", choices=["test"], help="send a test through hook and webhook now")
    parser.add_argument("--json", action="store_true", help="print it as JSON")


def run_alerts(args: argparse.Namespace) -> int:
    home = Session().home
    path, alerts = home.settings, load_settings(home).alerts
    if args.word == "test":
        if not (alerts.hook or alerts.webhook):
            raise OperationError("neither a hook nor a webhook is set", f"set one in [alerts] of {path}")
        arrived, outcome = send_test(home)
        for line in outcome.splitlines():
            say(line)
        return 0 if arrived else 1
    shown: dict[str, object] = {
        "on": list(alerts.on),
        "when": alerts.when,
        "bell": alerts.bell,
        "notify": alerts.notify,
        "hook": list(alerts.hook),
        "webhook": bool(alerts.webhook),  # its address may hold a token
    }
    if args.json:
        print_json({"path": str(path), "exists": path.exists(), **shown})
        return 0
    say(f"{path}{'' if path.exists() else ' (does not exist; these are the defaults, and nothing is sent)'}")
    for name, value in shown.items():
        text = ("yes" if value else "no") if isinstance(value, bool) else str(value)
        say(f"  {name:<8} {shlex.join(map(str, value)) or 'none' if isinstance(value, list) else text}")
    return 0
