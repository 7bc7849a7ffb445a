"""The table of keys: bindings, footer and help page are made from it. Keys that act on a run come from the actions."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from textual.binding import Binding, BindingType

from ..core.actions import ACTIONS, Action


class Scope(StrEnum):
    """Where a key works."""

    EVERYWHERE = "everywhere"
    ACTIONS = "acting on a run"
    RUNS = "list of runs"
    FILTER = "typing a filter"
    QUEUE = "a run that waits in a queue"
    RUN = "one run"
    CHART = "chart"
    LOG = "log"
    PROFILES = "choosing a profile"
    LAUNCH = "launch form"
    COMPARISON = "comparing runs"
    GRID = "grid of metrics"
    IMAGES = "images and texts of a run"


class Key(NamedTuple):
    """One key: what is pressed, what it does, its name in the footer and its explanation in the help."""

    keys: str
    """Textual key names, separated by commas."""
    action: str
    shown: str
    """The key as displayed."""
    label: str
    help: str
    scope: Scope
    footer: int = 0
    """Rank in the footer: 1 is dropped last if there is no room, 0 is never shown."""
    rare: bool = False
    """True to show it in the footer only while it can work, as few users ever need it."""
    acts: Action | None = None
    """The action it triggers, if that is one of ``core/actions.py``."""


_SCOPES = {"run": Scope.ACTIONS, "queue": Scope.QUEUE, "list": Scope.RUNS}


def _key_of(action: Action) -> Key:
    return Key(
        action.key,
        action.screen_action or f"act('{action.id}')",
        action.shown_key or action.key,
        action.label or action.name,
        action.help,
        _SCOPES[action.scope],
        action.footer,
        action.rare or action.scope == "queue",
        action,
    )


def _panel_keys() -> list[Key]:
    """Return a number key for each panel of a run without importing the panels, so the first paint need not wait."""
    count = sum(path.stem != "__init__" for path in Path(__file__).with_name("panels").glob("*.py"))
    keys = [Key(str(number), f"panel({number})", "", "", "", Scope.RUN) for number in range(1, count + 1)]
    told = "one by its number; tab: the next one"
    return [keys[0]._replace(shown=f"1…{count}", label="panels", help=told, footer=18), *keys[1:]]


KEYS: tuple[Key, ...] = (
    Key("question_mark,f1", "help", "?", "help", "show all keys", Scope.EVERYWHERE, 2),
    Key(
        "ctrl+p,colon",
        "screen.palette",
        "^p :",
        "palette",
        "find any action, run, metric, profile",
        Scope.EVERYWHERE,
        25,
    ),
    Key("U", "undo", "U", "undo", "within 5 s: stop, restart, label", Scope.EVERYWHERE),
    Key("at", "messages", "@", "messages", "past messages, in full", Scope.EVERYWHERE),
    Key("q,ctrl+q,ctrl+c", "quit", "q", "quit", "leave; trainings keep running", Scope.EVERYWHERE, 3),
    Key("enter,right", "open", "⏎", "open", "open the selected run", Scope.RUNS, 4),
    Key("n", "launch", "n", "launch", "launch a profile", Scope.RUNS, 1),
    Key("up,k", "move(-1)", "↑ ↓", "select", "a run (also by page, home, end)", Scope.RUNS),
    Key("down,j", "move(1)", "", "", "", Scope.RUNS),
    Key("pageup", "move(-1, 'page')", "", "", "", Scope.RUNS),
    Key("pagedown", "move(1, 'page')", "", "", "", Scope.RUNS),
    Key("home,g", "move(-1, 'edge')", "", "", "", Scope.RUNS),
    Key("end,G", "move(1, 'edge')", "", "", "", Scope.RUNS),
    Key("space", "mark", "space", "mark", "mark it: keys act on what is marked", Scope.RUNS, 20),
    Key("asterisk", "mark_all", "*", "mark all", "mark all that are shown, or none", Scope.RUNS, 29),
    Key("C", "compare", "C", "compare", "compare the marked runs, or the group", Scope.RUNS, 21),
    Key("i", "info", "i", "info", "arguments, code, versions, attempts", Scope.RUNS, 23),
    Key(
        "Y",
        "copy",
        "Y",
        "copy",
        "value, path, report, picture, table",
        Scope.RUNS,
        24,
    ),
    Key("N", "label('note')", "N", "note", "write a note on it", Scope.RUNS, 26),
    Key("t", "label('tags')", "t", "tags", "of the selected or the marked runs", Scope.RUNS, 27),
    Key("e", "label('name')", "e", "rename", "give it another name", Scope.RUNS, 28),
    Key("M", "carry", "M", "move", "move it to another machine", Scope.RUNS, 31),
    Key("enter", "", "⏎", "keep", "stop typing and keep what matches", Scope.FILTER, 1),
    Key("escape", "", "esc", "stop typing", "press again to show everything", Scope.FILTER, 2),
    Key("up", "", "↑ ↓", "select", "select one of those that match", Scope.FILTER, 3),
    Key(
        "slash",
        "filter",
        "/",
        "filter",
        "words, lr>=0.01, failed, today, -word",
        Scope.RUNS,
        5,
    ),
    Key("escape", "unfilter", "esc", "all runs", "drop filter, then marks, then order", Scope.RUNS),
    Key(
        "o",
        "sort('next')",
        "o O",
        "sort",
        "by the next column, or reversed",
        Scope.RUNS,
        22,
    ),
    Key("O", "sort('reverse')", "", "", "", Scope.RUNS),
    Key("vertical_line", "columns", "|", "columns", "choose what the list shows", Scope.RUNS, 30),
    Key("a", "next_attention", "a", "attention", "select the next that needs attention", Scope.RUNS),
    Key("escape,backspace", "back", "esc", "back", "back to the list of runs", Scope.RUN, 4),
    *_panel_keys(),
    Key("tab", "next_panel(1)", "", "", "", Scope.RUN),
    Key("shift+tab", "next_panel(-1)", "", "", "", Scope.RUN),
    Key("enter", "enter", "⏎", "enter", "enlarge the metric, or open a fold", Scope.RUN),
    Key("i", "info", "i", "info", "arguments, code, versions, attempts", Scope.RUN, 15),
    Key(
        "Y",
        "copy",
        "Y",
        "copy",
        "log lines, value, path, report, table",
        Scope.RUN,
        16,
    ),
    Key("", "label('note')", "N", "note", "write a note (log: the match before)", Scope.RUN, 24),
    Key("z", "zoom_panel", "z", "full size", "give the panel the whole screen", Scope.RUN, 12),
    Key("l", "evidence", "l", "log there", "the line that shows why it failed", Scope.RUN),
    Key("ctrl+e", "edit_code", "^e", "code", "open the failed line in your EDITOR", Scope.RUN),
    Key("left_square_bracket", "neighbour(-1)", "[ ]", "other run", "open the newer or the older run", Scope.RUN),
    Key("right_square_bracket", "neighbour(1)", "", "", "", Scope.RUN),
    Key("I", "images", "I", "images", "look at its logged images and texts", Scope.RUN, 9, rare=True),
    Key("greater_than_sign", "queue('down')", "", "", "", Scope.QUEUE),
    Key("y", "chart('scale')", "y", "log/linear", "log or linear value axis", Scope.CHART),
    Key("t", "chart('axis')", "t", "step/epoch", "by step, by epoch or by time", Scope.CHART),
    Key("m", "chart('metric')", "m M", "metric", "draw the next, or the one before", Scope.CHART),
    Key("M", "chart('metric_before')", "", "", "", Scope.CHART),
    Key("d", "chart('pin')", "d", "beside", "keep it beside other metrics, or not", Scope.CHART),
    Key("b", "branch", "b", "branch", "new run, from the checkpoint before", Scope.CHART),
    Key("g", "grid", "g", "grid", "all metrics as small charts", Scope.CHART, 13),
    Key("plus,equals_sign", "chart('in')", "+ -", "zoom", "around the cursor (also the wheel)", Scope.CHART),
    Key("minus", "chart('out')", "", "", "", Scope.CHART),
    Key("left", "aside(-1)", "← →", "cursor", "read values; shift moves the window", Scope.CHART),
    Key("right", "aside(1)", "", "", "", Scope.CHART),
    Key("shift+left", "chart('earlier')", "", "", "", Scope.CHART),
    Key("shift+right", "chart('later')", "", "", "", Scope.CHART),
    Key("0", "chart('reset')", "0", "reset", "the whole curve, without cursor", Scope.CHART),
    Key("h", "chart('ghost')", "h", "ghost", "show or hide the best earlier run", Scope.CHART),
    Key("u", "chart('clip')", "u", "outliers", "leave outliers beyond the edge", Scope.CHART),
    Key("tilde", "chart('smoother')", "~ `", "average", "smooth more, or less", Scope.CHART),
    Key("grave_accent", "chart('rougher')", "", "", "", Scope.CHART),
    Key("B", "chart('blocks')", "B", "blocks", "for fonts without braille", Scope.CHART),
    Key("up,k", "scroll(-1)", "↑ ↓", "scroll", "the panel (also by page, home, end)", Scope.LOG),
    Key("down,j", "scroll(1)", "", "", "", Scope.LOG),
    Key("pageup", "scroll(-1, 'page')", "", "", "", Scope.LOG),
    Key("pagedown,space", "scroll(1, 'page')", "", "", "", Scope.LOG),
    Key("home", "scroll(-1, 'edge')", "", "", "", Scope.LOG),
    Key("end,G", "scroll(1, 'edge')", "G", "follow", "go to the newest line and follow", Scope.LOG),
    Key("w", "log('wrap')", "w", "wrap", "wrap or cut (an error is never cut)", Scope.LOG),
    Key("", "", "← →", "sideways", "long lines, after a key of the log", Scope.LOG),
    Key("slash", "log('search')", "/", "search", "search the log", Scope.LOG, 14),
    Key("n", "log('next')", "n N", "next", "the next match, or the one before", Scope.LOG),
    Key("N", "log('previous')", "", "", "", Scope.LOG),
    Key("e", "log('error')", "e E", "error", "the next error, or the one before", Scope.LOG, 17),
    Key("E", "log('previous_error')", "", "", "", Scope.LOG),
    Key("v", "log('level')", "v", "level", "all, warnings and errors, or errors", Scope.LOG),
    Key("V", "log('select')", "V", "select", "lines; esc leaves (or drag the mouse)", Scope.LOG),
    Key("o", "attempt(-1)", "o O", "attempt", "show the attempt before, or after", Scope.LOG),
    Key("O", "attempt(1)", "", "", "", Scope.LOG),
    Key("W", "log('times')", "W", "when", "show when each line was printed", Scope.LOG),
    Key("enter,right", "choose", "⏎", "choose", "open the form of its launch", Scope.PROFILES, 1),
    Key("up,k", "move(-1)", "↑ ↓", "select", "select a profile", Scope.PROFILES, 3),
    Key("down,j", "move(1)", "", "", "", Scope.PROFILES),
    Key("slash", "filter", "/", "filter", "show only those that match", Scope.PROFILES, 4),
    Key("escape,q", "back", "esc", "back", "leave without starting anything", Scope.PROFILES, 2),
    Key("ctrl+s", "start", "^s", "start", "start the training as shown", Scope.LAUNCH, 1),
    Key(
        "ctrl+t",
        "rehearse",
        "^t",
        "rehearse",
        "20 steps, beside the failed attempt",
        Scope.LAUNCH,
        3,
    ),
    Key("ctrl+o", "save_profile", "^o", "save as", "as a profile of your own", Scope.LAUNCH, 3),
    Key("escape", "back", "esc", "back", "leave without starting anything", Scope.LAUNCH, 2),
    Key("ctrl+l", "all_arguments", "^l", "all fields", "a field for each known argument", Scope.LAUNCH, 6),
    Key("down", "app.focus_next", "↑ ↓", "field", "go to another (also tab, enter)", Scope.LAUNCH, 4),
    Key("up", "app.focus_previous", "", "", "", Scope.LAUNCH),
    Key("left", "", "← →", "value", "choose another, where there is a list", Scope.LAUNCH, 5),
    Key("pagedown", "scroll_preview(8)", "⇟ ⇞", "preview", "scroll the preview", Scope.LAUNCH),
    Key("pageup", "scroll_preview(-8)", "", "", "", Scope.LAUNCH),
    Key("m", "compared('metric')", "m M", "metric", "by the next, or the one before", Scope.COMPARISON, 5),
    Key("M", "compared('previous')", "", "", "", Scope.COMPARISON),
    Key("left", "compared('left')", "← →", "cursor", "read all curves there, best first", Scope.COMPARISON, 6),
    Key("right", "compared('right')", "", "", "", Scope.COMPARISON),
    Key("shift+left", "compared('earlier')", "", "", "", Scope.COMPARISON),
    Key("shift+right", "compared('later')", "", "", "", Scope.COMPARISON),
    Key("plus,equals_sign", "compared('in')", "+ -", "zoom", "shift ← → moves it, 0 resets", Scope.COMPARISON, 10),
    Key("minus", "compared('out')", "", "", "", Scope.COMPARISON),
    Key("0", "compared('reset')", "", "", "", Scope.COMPARISON),
    Key("t", "compared('axis')", "t", "step/epoch", "by step, by epoch or by time", Scope.COMPARISON, 8),
    Key("y", "compared('scale')", "y", "log/linear", "log or linear value axis", Scope.COMPARISON, 11),
    Key("o", "compared('sort')", "o O", "sort", "by the next column, or reversed", Scope.COMPARISON, 7),
    Key("O", "compared('reverse')", "", "", "", Scope.COMPARISON),
    Key("less_than_sign", "compared('back')", "< >", "columns", "scroll those of the table", Scope.COMPARISON, 9),
    Key("greater_than_sign", "compared('wider')", "", "", "", Scope.COMPARISON),
    Key("p", "compared('parallel')", "p", "parallel", "a line per run through its settings", Scope.COMPARISON, 8),
    Key("space", "compared('hide')", "space", "hide", "hide its curve, or show it again", Scope.COMPARISON, 12),
    Key("up,k", "scroll(-1)", "↑ ↓", "select", "a run, to draw it over the others", Scope.COMPARISON, 13),
    Key("down,j", "scroll(1)", "", "", "", Scope.COMPARISON),
    Key("enter", "open", "⏎", "open", "open the selected run", Scope.COMPARISON, 14),
    Key("Y", "copy", "Y", "copy", "report of all; value, path, picture", Scope.COMPARISON, 9),
    Key("escape,backspace", "back", "esc", "back", "back to the list of runs", Scope.COMPARISON, 4),
    Key("enter,z", "enlarge", "⏎", "enlarge", "draw the chart in focus large", Scope.GRID, 1),
    Key("up,k", "focus_chart(0, -1)", "←↑↓→", "focus", "choose the chart that has the focus", Scope.GRID, 5),
    Key("down,j", "focus_chart(0, 1)", "", "", "", Scope.GRID),
    Key("left", "focus_chart(-1, 0)", "", "", "", Scope.GRID),
    Key("right", "focus_chart(1, 0)", "", "", "", Scope.GRID),
    Key("n,pagedown,space", "page(1)", "n N", "page", "the next page, or the one before", Scope.GRID, 6),
    Key("N,pageup", "page(-1)", "", "", "", Scope.GRID),
    Key("shift+left", "cursor(-1)", "⇧← ⇧→", "cursor", "move the cursor through all charts", Scope.GRID, 7),
    Key("shift+right", "cursor(1)", "", "", "", Scope.GRID),
    Key("slash", "filter", "/", "filter", "show the metrics whose names match", Scope.GRID, 8),
    Key("escape,backspace,g", "back", "esc", "back", "back to the run", Scope.GRID, 4),
    Key("left", "turn(-1)", "← →", "step", "one before or after (shift: by ten)", Scope.IMAGES, 1),
    Key("right", "turn(1)", "", "", "", Scope.IMAGES),
    Key("shift+left,pageup", "turn(-10)", "", "", "", Scope.IMAGES),
    Key("shift+right,pagedown", "turn(10)", "", "", "", Scope.IMAGES),
    Key("up,k", "choose(-1)", "↑ ↓", "name", "another name, at this step", Scope.IMAGES, 5),
    Key("down,j", "choose(1)", "", "", "", Scope.IMAGES),
    Key("home,g", "first", "home", "first", "see the first one of this name", Scope.IMAGES, 7),
    Key("end,G,0", "newest", "G", "newest", "the newest one, then each new one", Scope.IMAGES, 6),
    Key("slash", "filter", "/", "filter", "texts and names that match", Scope.IMAGES, 8),
    Key("shift+up,K", "scroll(-1)", "⇧↑ ⇧↓", "scroll", "scroll a long text", Scope.IMAGES),
    Key("shift+down,J", "scroll(1)", "", "", "", Scope.IMAGES),
    Key("Y", "copy", "Y", "copy", "the path of an image, or the text", Scope.IMAGES, 9),
    Key("escape,backspace,I", "back", "esc", "back", "back to the run, at this step", Scope.IMAGES, 4),
    *(_key_of(action) for action in ACTIONS if action.key),
)


def bindings(*scopes: Scope) -> list[BindingType]:
    """Return Textual's bindings for some scopes."""
    return [
        Binding(key.keys, key.action, key.label or key.action, show=False)
        for key in keys_for(*scopes)
        if key.keys and key.action
    ]


def keys_for(*scopes: Scope) -> tuple[Key, ...]:
    """Return the keys of some scopes, in table order."""
    return tuple(key for key in KEYS if key.scope in scopes)


def footer_keys(*scopes: Scope) -> list[Key]:
    """Return the keys to show in a footer, the most important first."""
    return sorted((key for key in keys_for(*scopes) if key.footer), key=lambda key: key.footer)


def unbound(pressed: str, shown: str, here: Collection[Scope]) -> str:
    """Return a message for a key that does nothing where it was pressed: where it does something."""
    meant = (key for key in KEYS if pressed in key.keys.split(",") and key.label and key.scope not in here)
    found = next(meant, None)
    does = f" ({found.scope.value}: {found.label})" if found is not None else ""
    return f"{shown} does nothing here{does}; ? shows all keys"


def log_footer_keys() -> list[Key]:
    """Return the footer keys for a log that fills the screen."""
    kept = ("back", "zoom_panel", "help", "quit", "copy")
    others = [key for key in keys_for(Scope.RUN, Scope.EVERYWHERE) if key.action in kept]
    return [*others, *(key for key in keys_for(Scope.LOG) if key.shown and key.action != "scroll(-1)")]
