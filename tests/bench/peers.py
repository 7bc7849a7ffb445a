"""`make bench HARNESS=DIR`: mpstui beside the log viewers that are installed, in one run, held against our goals.

    python -m tests.bench.peers HARNESS [--only line,follow,big,startup,idle] [--runs 3] [--seconds 6] [--toolong TL]

HARNESS holds `peer_table.py` with its `tty_probe.py` and `log_load.py`. Prints the peers' table and then each goal with
the ratio that was measured. Peers that are not installed are named, not guessed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OURS = "mpstui"
BARE, TOOLONG, LNAV = "textual bare", "toolong", "lnav"


class Table:
    """Medians of one run: section, program, quantity."""

    def __init__(self, results: dict[str, dict[str, dict[str, list[float | None]]]]) -> None:
        self._results = results

    def of(self, section: str, program: str, quantity: str) -> float | None:
        """The median, None where nothing was measured."""
        values = [v for v in self._results.get(section, {}).get(program, {}).get(quantity, []) if v is not None]
        return statistics.median(values) if values else None

    def ratio(self, section: str, quantity: str, program: str) -> float | None:
        """Ours over a peer's."""
        ours, theirs = self.of(section, OURS, quantity), self.of(section, program, quantity)
        return ours / theirs if ours is not None and theirs else None

    def growth(self, quantity: str, low: str, high: str) -> float | None:
        """Ours in one section over ours in another."""
        small, large = self.of(low, OURS, quantity), self.of(high, OURS, quantity)
        return large / small if small and large is not None else None


@dataclass(frozen=True)
class Goal:
    """A ratio that must not be passed."""

    what: str
    most: float
    measure: Callable[[Table], float | None]


FAST = "follow 100000"
GOALS = (
    Goal("first paint over a bare Textual app", 1.25, lambda t: t.ratio("startup", "paint_ms", BARE)),
    Goal("new line to screen, p50, over lnav", 0.25, lambda t: t.ratio("line", "p50_ms", LNAV)),
    Goal("new line to screen, p50, over toolong", 0.5, lambda t: t.ratio("line", "p50_ms", TOOLONG)),
    Goal("100,000 lines/s: CPU over lnav", 0.7, lambda t: t.ratio(FAST, "cpu_pct", LNAV)),
    Goal("100,000 lines/s: p95 lag over lnav", 0.2, lambda t: t.ratio(FAST, "lag_p95_ms", LNAV)),
    Goal("CPU at 100,000 over 1,000 lines/s", 1.5, lambda t: t.growth("cpu_pct", "follow 1000", FAST)),
    Goal("1 GB log: time to the last line, over lnav", 0.125, lambda t: t.ratio("big", "usable_ms", LNAV)),
    Goal("1 GB log: memory over lnav", 0.125, lambda t: t.ratio("big", "rss_mb", LNAV)),
    Goal("idle CPU over a bare Textual app", 2.0, lambda t: t.ratio("idle", "cpu_pct", BARE)),
)


def measure(args: argparse.Namespace, work: Path) -> dict[str, Any]:
    """Run the harness and return its results."""
    program = Path(sys.executable).with_name("mpstui")
    out = work / "results.json"
    command = [sys.executable, str(args.harness / "peer_table.py"), "--only", args.only]
    command += ["--runs", str(args.runs), "--seconds", str(args.seconds), "--work", str(work), "--out", str(out)]
    command += ["--rates", "1000,100000", "--bin", f"textual={sys.executable}"]
    command += ["--add", f"{OURS}={program} watch {{log}}", "--followers", OURS]
    command += ["--peers", ",".join([LNAV, TOOLONG, BARE, OURS])]
    if args.toolong:
        command += ["--bin", f"tl={args.toolong}"]
    subprocess.run(command, check=True, env={**os.environ, "MPSTUI_HOME": str(work / "mpstui-home")})
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def main() -> int:
    """Measure, then print each goal; 1 when one was measured and missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("harness", type=Path)
    parser.add_argument("--only", default="startup,idle,line,follow,big")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--toolong", help="the tl program, where it is not on PATH")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mpstui-bench-") as work:
        found = measure(args, Path(work))
    table, missed = Table(found["results"]), 0
    print("\n| goal | at most | measured |\n|---|---|---|")
    for goal in GOALS:
        ratio = goal.measure(table)
        missed += ratio is not None and ratio > goal.most
        said = "not measured" if ratio is None else f"{ratio:.3f} {'met' if ratio <= goal.most else '**missed**'}"
        print(f"| {goal.what} | {goal.most} | {said} |")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
