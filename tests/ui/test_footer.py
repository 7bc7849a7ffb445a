"""The footer: where there is no room for all keys, those that cannot work now give way first."""

from __future__ import annotations

from collections import Counter

import pytest

from mpstui.core.present import legend
from mpstui.ui.bindings import Key, Scope, footer_keys, keys_for
from mpstui.ui.rows import width_of
from mpstui.ui.screens.comparing import ComparisonScreen
from mpstui.ui.screens.grid import GridScreen
from mpstui.ui.screens.help import help_rows
from mpstui.ui.screens.images import ImagesScreen
from mpstui.ui.screens.run import RunScreen
from mpstui.ui.screens.runs import RunsScreen
from mpstui.ui.widgets.lines import footer

KEYS = footer_keys(Scope.RUN, Scope.ACTIONS, Scope.LOG, Scope.EVERYWHERE)


def ended(key: Key) -> bool:
    return key.acts is None or key.acts.id not in ("stop", "kill", "pause", "clear_cache")


def test_keys_that_work_take_the_place_of_those_that_do_not() -> None:
    keys = [key for key in KEYS if not key.rare]
    alive, over = footer(keys, 80, lambda key: True).text, footer(keys, 80, ended).text
    assert "s stop" in alive
    assert "s stop" not in over
    assert "R edit" in over
    assert "/ search" in over


def test_keys_of_the_queue_stand_there_for_what_waits_in_one() -> None:
    keys = footer_keys(Scope.RUNS, Scope.QUEUE)
    assert "pause queue" in footer(keys, 200, lambda key: True).text
    assert "pause queue" not in footer(keys, 200, lambda key: key.acts is None).text


def test_the_order_never_changes() -> None:
    shown = [footer(KEYS, 300, usable).text for usable in (ended, lambda key: True)]
    assert shown[0] == shown[1]


@pytest.mark.parametrize("width", [20, 60, 80, 120])
def test_it_keeps_to_its_line(width: int) -> None:
    for usable in (ended, lambda key: False, lambda key: True):
        assert width_of(footer(KEYS, width, usable).text.rstrip()) <= width


@pytest.mark.parametrize("width", [16, 56, 74, 116, 152, 196])
def test_the_page_of_keys_cuts_nothing_off(width: int) -> None:
    lines = help_rows(width, 38)
    assert max(line.width for line in lines) <= width
    words = " ".join(line.text for line in lines).split()
    assert Counter(word for known in legend() for word in known.meaning.split()) <= Counter(words)
    assert Counter(word for key in KEYS for word in key.help.split()) <= Counter(words)


OF_SCREENS = [RunsScreen.SCOPES, RunScreen.SCOPES, GridScreen.SCOPES, ComparisonScreen.SCOPES, ImagesScreen.SCOPES]


@pytest.mark.parametrize("here", OF_SCREENS, ids=lambda here: here[0].value)
def test_the_page_of_keys_is_whole_in_a_large_window(here: tuple[Scope, ...]) -> None:
    assert len(help_rows(196, 58, here)) <= 58


@pytest.mark.parametrize("here", OF_SCREENS, ids=lambda here: here[0].value)
def test_the_keys_of_a_screen_stand_first_and_are_whole(here: tuple[Scope, ...]) -> None:
    first = Counter(" ".join(line.text for line in help_rows(116, 38, here)[:37]).split())
    assert Counter(word for key in keys_for(*here) for word in key.help.split()) <= first
