"""`mpstui note`, `tag` and `rename`."""

from __future__ import annotations

import json
import os

import pytest

from mpstui.cli.main import main
from mpstui.core.model.home import resolve_home
from tests.core.runs.build import RunBuilder


def ended(name: str) -> str:
    return RunBuilder(resolve_home(os.environ), name).status("ended").launch().exit(code=0).run.run


def told(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert main(words) == code
    out, err = capsys.readouterr()
    return out if code == 0 else err


def test_a_note_is_kept_printed_and_taken_away(capsys: pytest.CaptureFixture[str]) -> None:
    run = ended("first")
    assert told(capsys, "note", run) == f"{run} has no note\n"
    assert told(capsys, "note", "first", "seed", "of the paper") == f"{run}: note saved\n"
    assert told(capsys, "note", run) == "seed of the paper\n"
    assert "note      seed of the paper\n" in told(capsys, "show", run)
    assert json.loads(told(capsys, "ps", "--json"))[0]["note"] == "seed of the paper"
    assert told(capsys, "note", run, "") == f"{run}: note removed\n"
    assert json.loads(told(capsys, "note", run, "--json"))["note"] is None


def test_tags_of_several_runs_in_any_order_of_words(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = ended("first"), ended("second")
    assert "TAGS" not in told(capsys, "ps")
    both = told(capsys, "tag", "first", "+keep", "second", "+paper")
    assert both == f"{first}  #keep #paper\n{second}  #keep #paper\n"
    found = json.loads(told(capsys, "tag", "first", "-keep", "--json"))
    assert found == [{"run": first, "name": "first", "tags": ["paper"], "note": None}]
    assert told(capsys, "tag", second) == f"{second}  #keep #paper\n"
    assert told(capsys, "ps").splitlines()[1].endswith("#keep #paper")
    assert "'a b' cannot be a tag" in told(capsys, "tag", first, "+a b", code=2)
    assert "there is no run 'third'" in told(capsys, "tag", "first", "third", "+x", code=2)
    assert "tag needs RUN" in told(capsys, "tag", "+x", code=2)
    assert told(capsys, "tag", first) == f"{first}  #paper\n"


def test_a_run_is_found_by_its_new_name_and_by_the_old_one(capsys: pytest.CaptureFixture[str]) -> None:
    run = ended("first")
    assert told(capsys, "rename", "first", "the", "baseline") == f"{run} is called the baseline\n"
    assert told(capsys, "show", "the baseline").startswith(f"the baseline  ({run})")
    assert "the baseline" in told(capsys, "ps")
    assert told(capsys, "rename", "first", "") == f"{run} is called first\n"
