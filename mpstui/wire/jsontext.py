"""JSON as it travels between our processes: strict, non-finite numbers as null."""

from __future__ import annotations

import json
import math
from typing import Any


class UnreadableRecord(Exception):
    """A file that should hold one JSON object does not (half written, foreign, or of a newer schema)."""


def finite(value: Any) -> Any:
    """The same value with every NaN and infinity, at any depth, replaced by None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return value


def dump(value: Any, *, indent: int | None = None) -> str:
    """Strict JSON text; a value json does not know travels as its string."""
    return json.dumps(finite(value), ensure_ascii=False, allow_nan=False, default=str, indent=indent)


def load_object(text: str | bytes) -> dict[str, Any]:
    """Parse one JSON object.

    Raises:
        UnreadableRecord: the text is not JSON, or not an object.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableRecord(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise UnreadableRecord(f"expected an object, found {type(value).__name__}")
    return value
