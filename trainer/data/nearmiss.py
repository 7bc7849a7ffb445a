"""Mined near misses: JSON lines that name, for a query's row, rows whose payloads are close but wrong."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..errors import UsageError

_EXAMPLE = '{"q_index": 0, "near_miss_indices": [5, 9]}'


@dataclass(frozen=True)
class NearMisses:
    """Lists of rows, one after the other."""

    rows: torch.Tensor
    """int64: all lists together."""
    starts: torch.Tensor
    """int64 (N,): where each query's list begins."""
    counts: torch.Tensor
    """int64 (N,): its length; 0: none were mined."""


def read_near_misses(path: Path, size: int) -> NearMisses:
    """Read the lists of ``size`` queries; lists of the same query are joined, in order, each row once.

    Raises:
        UsageError: the file cannot be read, or a line, which is named, cannot be used.
    """
    lists: dict[int, dict[int, None]] = {}
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    query, rows = _parsed(line, f"--nearmiss-jsonl {path}, line {number}", size)
                    lists.setdefault(query, {}).update(dict.fromkeys(rows))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"--nearmiss-jsonl {path}: {reason}; it must be a file of lines like {_EXAMPLE}") from error
    return _joined(lists, size)


def _parsed(line: str, where: str, size: int) -> tuple[int, list[int]]:
    try:
        record: Any = json.loads(line)
        query, rows = record["q_index"], record["near_miss_indices"]
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{where}: not an object like {_EXAMPLE}; mine the file again, or remove the line") from error
    for key, values in (("q_index", [query]), ("near_miss_indices", rows)):
        if not isinstance(values, list) or not all(type(row) is int and 0 <= row < size for row in values):
            raise UsageError(f"{where}: {key} must name rows from 0 to {size - 1}; was it mined from other data?")
    return query, rows


def _joined(lists: dict[int, dict[int, None]], size: int) -> NearMisses:
    counts = torch.zeros(size, dtype=torch.int64)
    if lists:
        counts[torch.tensor(list(lists))] = torch.tensor([len(found) for found in lists.values()])
    rows = torch.tensor([row for query in sorted(lists) for row in lists[query]], dtype=torch.int64)
    return NearMisses(rows, torch.cumsum(counts, 0) - counts, counts)
