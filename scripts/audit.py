"""Look for known holes in the packages of constraints.txt and for doubtful places in our own code.

    make audit

Ends with 1 when something was found. What could not be looked at is said in a sentence, and is no finding.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 300


def packages() -> list[str]:
    """Known holes, one a line; says which packages nobody could judge."""
    asked = [
        "--require-hashes",
        "--disable-pip",
        "-r",
        "constraints.txt",
        "--format",
        "json",
        "--progress-spinner",
        "off",
    ]
    command = [sys.executable, "-m", "pip_audit", *asked]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False)
        found = json.loads(done.stdout)["dependencies"]
    except subprocess.TimeoutExpired:
        print(f"packages: not audited, the service with the advisories gave no answer in {SECONDS} s")
        return []
    except (ValueError, KeyError):
        why = (done.stderr.strip().splitlines() or ["no word"])[-1]
        print(f"packages: not audited, the service with the advisories could not be asked ({why})")
        return []
    unknown = [one["name"] for one in found if "skip_reason" in one]
    if len(unknown) == len(found):
        print(f"packages: none of {len(found)} audited, what pip-audit asks for advisories knows none of them")
        return []
    if unknown:
        print(f"packages: {len(unknown)} of {len(found)} not audited, the service does not know {', '.join(unknown)}")
    holes = [(one, hole) for one in found for hole in one.get("vulns", ())]
    print(f"packages: {len(found) - len(unknown)} audited, {len(holes)} known holes")
    return [
        f"{one['name']} {one['version']}: {hole['id']}, mended in {', '.join(hole['fix_versions']) or 'no version yet'}"
        for one, hole in holes
    ]


def code() -> list[str]:
    """Places that bandit calls more than slight; those that are none carry `# nosec` and the reason."""
    command = [sys.executable, "-m", "bandit", "-q", "-r", "mpstui", "trainer", "-ll", "-f", "json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode not in (0, 1):
        return [f"bandit failed: {done.stderr.strip()[-500:]}"]
    found = json.loads(done.stdout)["results"]
    print(f"code: {len(found)} doubtful places")
    return [f"{one['filename']}:{one['line_number']}: {one['test_id']} {one['issue_text']}" for one in found]


def main() -> int:
    found = [*packages(), *code()]
    print("".join(f"{one}\n" for one in found), end="", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
