"""The terminal's title: what it says, how often, and that it is given back."""

from __future__ import annotations

import sys

import pytest

from mpstui.core.model.snapshot import Numbers
from mpstui.ui.title import RESTORE, SAVE, Title, has_progress_bar, in_focus, title
from tests.snapshots import changed
from tests.terminal import Terminal

from . import fakes

XTERM = {"TERM": "xterm-256color"}


def test_the_title_tells_share_loss_name_and_time_left() -> None:
    run = fakes.running(name="resnet")
    told = title([run], run)
    assert told.startswith("29 % ")
    assert " resnet · " in told
    assert fakes.failed().name in title([], fakes.failed())
    assert "failed" in title([], fakes.failed())


def test_what_is_not_known_is_left_out() -> None:
    run = fakes.running(name="resnet", numbers=Numbers())
    assert title([run], run) == "resnet"


def test_the_list_tells_of_the_only_live_run_or_counts_them() -> None:
    one, other, dead = fakes.running("a"), fakes.running("b"), fakes.failed()
    assert in_focus([one, dead], "") is one
    assert in_focus([one, other], "b") is other
    assert title([one, other, dead], in_focus([one, other, dead], "")) == "1 failed · 2 live · mpstui"
    assert title([], None) == "mpstui"


def test_no_name_steers_the_terminal() -> None:
    run = fakes.running(name="a\x1b]0;evil\x07\x9dworse\x9c")
    sent = Title(XTERM).change([run], run.run, 0.0)
    assert sent.count("\x07") == 1
    assert sent.count("\x1b") == 2  # the title is put by, and set
    assert "\x9d" not in sent


def test_numbers_are_told_every_few_seconds_and_a_change_of_state_at_once() -> None:
    teller, run = Title(XTERM), fakes.running(name="resnet")
    assert SAVE in teller.change([run], run.run, 0.0)
    assert teller.change([run], run.run, 9.0) == ""
    later = changed(run, step=40_000)
    assert "51 %" in teller.change([later], run.run, 10.0)
    assert teller.change([run], run.run, 11.0) == ""
    assert "failed" in teller.change([fakes.failed(run=run.run)], run.run, 11.1)
    assert RESTORE in teller.restored()


@pytest.mark.parametrize(
    ("environ", "known"),
    [
        ({"TERM": "xterm-ghostty"}, True),
        ({"WT_SESSION": "1"}, True),
        ({"VTE_VERSION": "8003"}, True),
        ({"VTE_VERSION": "7600"}, False),
        ({"TERM": "xterm-kitty"}, False),
        ({"TERM_PROGRAM": "iTerm.app"}, False),
    ],
)
def test_a_progress_bar_is_set_only_where_it_is_known_to_be_one(environ: dict[str, str], known: bool) -> None:
    run = fakes.running()
    assert has_progress_bar(environ) is known
    assert ("]9;4;1;29" in Title({"TERM": "xterm", **environ}).change([run], run.run, 0.0)) is known


def test_a_terminal_without_titles_is_told_none() -> None:
    assert Title({"TERM": "linux"}).change([fakes.running()], "", 0.0) == ""


def test_the_title_is_given_back() -> None:
    with Terminal([sys.executable, "-m", "mpstui"], columns=80, rows=24) as terminal:
        terminal.wait_text("no runs yet", "n launch")
        assert b"\x1b]0;mpstui\x07" in terminal.raw
        terminal.press("q")
        assert terminal.wait_exit() == 0
        assert RESTORE.encode() in terminal.raw
