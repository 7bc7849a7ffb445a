"""Reads ``excerpts.txt``, pairs of a rule's id and the end of a log that this rule explains, and ``harmless.txt``, logs
that no rule explains."""

from __future__ import annotations

from pathlib import Path


def read_excerpts(name: str) -> list[tuple[str, str]]:
    """Return every excerpt of a file with its heading."""
    blocks = Path(__file__).with_name(name).read_text("utf-8").split("\n## ")[1:]
    pairs = (block.partition("\n") for block in blocks)
    return [(rule_id, text.strip("\n").replace("␍", "\r")) for rule_id, _, text in pairs]


EXCERPTS = read_excerpts("excerpts.txt")
HARMLESS = read_excerpts("harmless.txt")
