"""Lines by step and steps by line, in real files."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpstui.core.logview.document import LogDocument
from mpstui.core.logview.steps import LogSteps


def log(tmp_path: Path, lines: list[str]) -> tuple[LogDocument, LogSteps]:
    path = tmp_path / "output.log"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    document = LogDocument(path)
    document.refresh()
    return document, LogSteps(document)


def of_steps(count: int, every: int = 1) -> list[str]:
    out = ["loading data"]
    for number in range(count):
        out.append(f"epoch 1 step {number * every} loss {2 / (number + 1):.4f}")
        out += ["saved checkpoint.pt"] if number % 10 == 5 else []
    return out


@pytest.mark.parametrize("step", [0, 1, 7, 4_999, 12_345, 29_999])
def test_the_line_of_a_step_is_found_in_a_long_log(tmp_path: Path, step: int) -> None:
    _, steps = log(tmp_path, of_steps(30_000))
    line = steps.line_at(step)
    assert line is not None
    assert f"step {step} " in line.text
    assert steps.of(line) == step


def test_between_two_lines_the_one_before_is_meant(tmp_path: Path) -> None:
    _, steps = log(tmp_path, of_steps(3_000, every=50))
    line = steps.line_at(123_456.7)
    assert line is not None
    assert "step 123450 " in line.text
    assert (found := steps.line_at(10_000_000)) is not None
    assert "step 149950 " in found.text


def test_a_line_without_a_step_belongs_to_the_step_told_before_it(tmp_path: Path) -> None:
    document, steps = log(tmp_path, of_steps(40))
    (saved,) = [line for line in document.window(0, 8) if "saved" in line.text] or document.window(0, 1)
    assert steps.told(saved) is None
    assert steps.of(saved) == 5
    assert steps.of(document.window(0, 1)[0]) is None  # before the first step nothing is known


@pytest.mark.parametrize(
    "lines",
    [
        ["no step here"] * 5_000,
        [f"Epoch {epoch} [{batch}/900] loss: 0.5" for epoch in range(20) for batch in range(900)],
        of_steps(5_000) + of_steps(5_000),
        [],
    ],
)
def test_where_steps_are_not_told_or_go_back_nothing_is_guessed(tmp_path: Path, lines: list[str]) -> None:
    _, steps = log(tmp_path, lines)
    assert steps.line_at(2_500) is None


def test_a_step_out_of_all_that_are_planned_is_one_of_the_whole_training(tmp_path: Path) -> None:
    document, alone = log(tmp_path, [f"epoch {1 + step // 32}/3 step {step}/96 loss 1.5" for step in range(1, 97)])
    planned = LogSteps(document, 96)
    lines = document.window(0, 96)
    assert alone.told(lines[0]) is None, "in a first epoch it may be one of the epoch"
    assert LogSteps(document, 32).told(lines[0]) is None
    assert [planned.told(line) for line in lines] == list(range(1, 97))
    found = planned.line_at(40)
    assert found is not None
    assert "step 40/96" in found.text
