"""`mpstui hosts`: whether each machine can be reached over ssh, and what `doctor` finds there."""

from __future__ import annotations

import argparse
from typing import Any

from ..core import present as shown
from ..core.hosts.line import HostError
from ..core.settings import load_settings
from ..wire import storage
from .far import Answer, ask_all
from .machine import MARKS
from .session import Session, print_json, say, say_lines

_CLOCK_SECONDS = 2.0
"""A clock that is off by more makes ages and the order of runs wrong."""
_PASSED_OVER = ("telemetry", "open_files", "sleep", "openmp")
"""Checks that are shown only if something is wrong; `mpstui doctor --host` shows all."""

_NONE = """\
no other machine is named yet
  mpstui hosts NAME            checks one: whatever `ssh NAME` takes, such as ada@10.0.0.7
  mpstui --host NAME           opens the screen on it; ps, logs, launch and the others take --host too
  [hosts]                      in {}
  show = ["NAME"]              adds it to the screen, the launch form and this check, without --host"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = """\
Checks the hosts named here, else those of settings.toml: ssh, Python, clock, torch, devices, disk.
exit status: 0 all can be used; 1 one has a problem; 255 one cannot be reached. Examples:
  mpstui hosts
  mpstui hosts gpu1 me@10.0.0.7
  mpstui doctor --host gpu1     every check there"""
    parser.add_argument("names", nargs="*", metavar="HOST", help="whatever `ssh HOST` takes")
    parser.add_argument("--json", action="store_true", help="print facts and results as JSON")


def run(args: argparse.Namespace) -> int:
    session = Session()
    settings = load_settings(session.home).hosts
    named = [*(args.hosts or ()), *args.names]
    hosts = list(dict.fromkeys(named or (*settings.show, *settings.named)))
    if not hosts and args.json:
        print_json([])
        return 0
    if not hosts:
        say_lines(_NONE.format(session.home.settings))
        return 0
    found = [_judged(host, one) for host, one in zip(hosts, ask_all(hosts, ["doctor", "--json"]), strict=True)]
    if args.json:
        print_json(found)
    else:
        for place, one in enumerate(found):
            _print(one, first=not place)
    if any(one["error"] for one in found):
        return HostError.exit_code
    return 0 if all(one["ok"] for one in found) else 1


def _judged(host: str, found: Answer | HostError) -> dict[str, Any]:
    """Return what `--json` prints about a host; unknown facts are None."""
    unknown = {"ok": False, "seconds": None, "python": None, "clock_ahead": None, "bundle": None, "doctor": None}
    if isinstance(found, HostError):
        error = {"kind": found.kind, "sentence": found.sentence, "hint": found.hint}
        return {"host": host, **unknown, "error": error}
    known = {
        "seconds": found.seconds,
        "python": found.line.facts.get("python"),
        "clock_ahead": found.line.clock_ahead,
        "bundle": found.line.facts.get("bundle"),
    }
    try:
        doctor = storage.load_object(found.output)
    except storage.UnreadableRecord:
        said = found.errors.decode(errors="replace").strip().splitlines() or ["nothing"]
        error = {"kind": "failed", "sentence": f"{host}: the check ended with {found.code}: {said[-1]}", "hint": ""}
        return {"host": host, **unknown, **known, "error": error}
    return {"host": host, **unknown, **known, "ok": bool(doctor["ok"]), "doctor": doctor, "error": None}


def _print(one: dict[str, Any], *, first: bool) -> None:
    if not first:
        say("")
    say(one["host"])
    if one["error"]:
        say(f"  {MARKS['problem']} {one['error']['sentence'].removeprefix(one['host'] + ': ')}")
        if one["error"]["hint"]:
            say(f"      {one['error']['hint']}")
    if one["seconds"] is not None:
        say(f"  {MARKS['ok']} reached in {one['seconds']:.1f} s")
        say(f"  {MARKS['ok']} Python {one['python']['version']}, {one['python']['executable']}")
        ahead = one["clock_ahead"]
        if abs(ahead) <= _CLOCK_SECONDS:
            say(f"  {MARKS['ok']} its clock is ours")
        else:
            way = "ahead" if ahead > 0 else "behind"
            told = f"its clock is {shown.duration(abs(ahead))} {way}: the ages of its runs are wrong by that"
            say(f"  {MARKS['warning']} {told}")
    for check in one["doctor"]["checks"] if one["doctor"] else ():
        if check["id"] not in _PASSED_OVER or check["status"] in ("warning", "problem"):
            say(f"  {MARKS[check['status']]} {check['text']}")
            if check["advice"]:
                say(f"      {check['advice']}")
