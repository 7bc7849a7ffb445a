"""Tables logged to Weights & Biases, as text: their rows are in JSON files beside the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ....wire import storage

KINDS = frozenset(("table-file", "table", "joined-table", "partitioned-table"))
_MOST_BYTES = 1 << 20
_MOST_ROWS, _MOST_COLUMNS, _WIDEST = 50, 12, 32


def table_text(path: Path | None) -> str:
    """Return the first rows and columns of a table, aligned; if its file cannot be read, a sentence that says so."""
    if path is None:
        return "a table whose file is not told"
    try:
        found = json.loads(storage.read_text(path, _MOST_BYTES))
        names, rows = [str(name) for name in found["columns"]], [list(row) for row in found["data"]]
    except OSError as error:
        return f"a table that cannot be read: {path.name}: {error.strerror or 'no such file'}"
    except (ValueError, KeyError, TypeError, RecursionError):
        return f"a table that cannot be read: {path.name} is damaged"
    shown = [names[:_MOST_COLUMNS], *(list(map(_cell, row[:_MOST_COLUMNS])) for row in rows[:_MOST_ROWS])]
    columns = max(map(len, shown))
    filled = [[*row, *[""] * (columns - len(row))] for row in shown]
    widths = [max(map(len, column)) for column in zip(*filled, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in filled]
    more = [f"{len(rows):,} rows, {len(names)} columns"] if len(rows) > _MOST_ROWS or len(names) > _MOST_COLUMNS else []
    return "\n".join([*lines, *more])


def _cell(value: Any) -> str:
    if isinstance(value, dict) and isinstance(value.get("_type"), str):
        text = f"<{value['_type']}>"
    else:
        text = f"{value:.6g}" if isinstance(value, float) else "" if value is None else str(value)
    text = " ".join(text.split())
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
