"""The forms that the documentation promises are read, and as what."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mpstui.core.formats.files import read_log
from mpstui.core.formats.points import ParsedLog

PAGE = Path(__file__).parents[3] / "docs" / "formats.md"
FORMS = re.findall(r"^\| `(.+)` \| ((?:epoch|step) \d.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def told(found: ParsedLog) -> str:
    """What was read, in the words of the table."""
    counted = ((name, getattr(found, name), getattr(found, f"{name}s")) for name in ("epoch", "step"))
    parts = [f"{name} {now}" + (f" of {all_}" if all_ else "") for name, now, all_ in counted if now is not None]
    if found.train_loss is not None:
        parts.append(f"loss {found.train_loss.last:g}")
    if found.learning_rate is not None:
        parts.append(f"lr {found.learning_rate:g}")
    return ", ".join([*parts, *(name for name in found.metrics if name not in ("loss", "train_loss", "lr"))])


def test_the_table_is_found() -> None:
    assert len(FORMS) >= 7


@pytest.mark.parametrize(("line", "meaning"), FORMS)
def test_a_form_of_the_table_is_read_as_it_says(tmp_path: Path, line: str, meaning: str) -> None:
    log = tmp_path / "train.log"
    log.write_text(f"{line}\n")
    assert told(read_log(log)) == meaning


@pytest.mark.parametrize(
    ("line", "lines", "is_read"), [("10 2.31", 9, False), ("loss 2.31", 2, False), ("loss 2.31", 3, True)]
)
def test_a_number_without_a_name_or_a_counter_is_told_as_the_page_says(
    tmp_path: Path, line: str, lines: int, is_read: bool
) -> None:
    log = tmp_path / "train.log"
    log.write_text(f"{line}\n" * lines)
    assert (read_log(log).train_loss is not None) is is_read
