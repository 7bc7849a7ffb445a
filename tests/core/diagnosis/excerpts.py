"""Reads ``excerpts/*.txt``, one file a rule module: "## rule" begins the end of a log that this rule explains, ␍ is a
carriage return (a progress bar being redrawn). ``harmless.txt`` holds logs that no rule explains.

The ends of logs were written for these tests around messages that torch, macOS and libraries print: several wordings a
class, across torch 1.13 to 2.15, with the noise that surrounds them in practice.
"""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).parent


def read_excerpts(path: Path) -> list[tuple[str, str]]:
    """Every excerpt of a file with its heading."""
    blocks = f"\n{path.read_text('utf-8')}".split("\n## ")[1:]
    pairs = (block.partition("\n") for block in blocks)
    return [(heading, text.strip("\n").replace("␍", "\r")) for heading, _, text in pairs]


EXCERPTS = [excerpt for path in sorted((_HERE / "excerpts").glob("*.txt")) for excerpt in read_excerpts(path)]
HARMLESS = read_excerpts(_HERE / "harmless.txt")
