"""Look for known vulnerabilities in the packages of constraints.txt and for doubtful places in our own code.

    make audit [ADVISORIES=URL]

Both tools also get a case that is known to be bad: one that misses it says nothing about the rest. Exits with 1 if
something was found or a tool missed its bad case. What could not be checked is named, and is no finding. With
ADVISORIES, an address with OSV's interface is asked instead of the package index.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 300
BAD_PACKAGE = f"mpstui-known-bad==1.0 --hash=sha256:{'0' * 64}\n"
BAD_CODE = "import subprocess\nsubprocess.call(input(), shell=True)\n"


class Look(NamedTuple):
    """What came of looking at one kind of thing."""

    text: str
    found: tuple[str, ...] = ()
    is_whole: bool = True
    """Whether all of it could be looked at."""


def packages(pinned: Path, advisories: str | None = None) -> Look:
    """Known holes in the packages that a file pins.

    Args:
        advisories: an address that answers as OSV's does; None: what pip-audit asks by itself.
    """
    command = [sys.executable, "-m", "pip_audit", "--require-hashes", "--disable-pip", "-r", str(pinned)]
    command += ["--format", "json", "--progress-spinner", "off"]
    command += ["--vulnerability-service", "osv", "--osv-url", advisories] if advisories else []
    direct = {**os.environ, "no_proxy": f"{os.environ.get('no_proxy', '')},127.0.0.1"}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=direct, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        found = json.loads(done.stdout)["dependencies"]
    except subprocess.TimeoutExpired:
        return Look(f"not audited, the service with the advisories gave no answer in {SECONDS} s", is_whole=False)
    except (ValueError, KeyError):
        why = (done.stderr.strip().splitlines() or ["no word"])[-1]
        return Look(f"not audited, the service with the advisories could not be asked ({why})", is_whole=False)
    unknown = [one["name"] for one in found if "skip_reason" in one]
    if len(unknown) == len(found):
        text = f"none of {len(found)} audited, what pip-audit asks for advisories knows none of them"
        return Look(text, is_whole=False)
    holes = tuple(
        f"{one['name']} {one['version']}: {hole['id']}, mended in {', '.join(hole['fix_versions']) or 'no version yet'}"
        for one in found
        for hole in one.get("vulns", ())
    )
    text = f"{len(found) - len(unknown)} audited, {len(holes)} known holes"
    if unknown:
        text += f"; {len(unknown)} not audited, the service does not know {', '.join(unknown)}"
    return Look(text, holes, is_whole=not unknown)


def code(folders: Sequence[str]) -> Look:
    """Places that bandit calls more than slight; those that are none carry `# nosec` and the reason."""
    command = [sys.executable, "-m", "bandit", "-q", "-r", *folders, "-ll", "-f", "json"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False)
        told = json.loads(done.stdout)
        found, unread = told["results"], [f"{one['filename']} ({one['reason']})" for one in told["errors"]]
    except subprocess.TimeoutExpired:
        return Look(f"not audited, bandit took more than {SECONDS} s", is_whole=False)
    except (ValueError, KeyError):
        return Look(f"not audited, bandit failed: {done.stderr.strip()[-500:]}", is_whole=False)
    places = (f"{one['filename']}:{one['line_number']}: {one['test_id']} {one['issue_text']}" for one in found)
    text = f"{len(found)} doubtful places" + (f"; not audited: {', '.join(unread)}" if unread else "")
    return Look(text, tuple(places), is_whole=not unread)


def blind() -> list[str]:
    """The tools that do not see what is known to be bad."""
    with tempfile.TemporaryDirectory() as folder, _one_advisory() as address:
        pinned = Path(folder, "pinned.txt")
        pinned.write_text(BAD_PACKAGE)
        Path(folder, "bad.py").write_text(BAD_CODE)
        looks = {"pip-audit": packages(pinned, address), "bandit": code([folder])}
    return [
        f"{tool} is blind: of a case made to be found it says: {look.text}"
        for tool, look in looks.items()
        if not look.found
    ]


@contextmanager
def _one_advisory() -> Iterator[str]:
    """The address of a stand-in for OSV that knows a hole in every package it is asked for."""

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            package = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["package"]
            body = json.dumps({"vulns": [{"id": "KNOWN-BAD", "affected": [{"package": package}]}]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def main(arguments: Sequence[str]) -> int:
    if len(arguments) > 1:
        print("usage: audit.py [ADVISORIES]", file=sys.stderr)
        return 2
    looks = {
        "packages": packages(ROOT / "constraints.txt", *arguments),
        "code": code(["mpstui", "trainer"]),
    }
    for name, look in looks.items():
        print(f"{name}: {look.text}")
    found = [*blind(), *(place for look in looks.values() for place in look.found)]
    print("".join(f"{one}\n" for one in found), end="", file=sys.stderr)
    whole = all(look.is_whole for look in looks.values())
    verdict = (
        "something was found" if found else "nothing was found" if whole else "not whole; of the rest nothing was found"
    )
    print(f"audit: {verdict}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
