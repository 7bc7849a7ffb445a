"""Rules of this package that a reader would otherwise have to remember."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import mpstui.ui
from mpstui.ui.app import MpstuiApp
from mpstui.ui.bindings import KEYS, Scope, footer_keys, keys_for

UI = Path(mpstui.ui.__file__).parent
SOURCES = sorted(UI.rglob("*.py"))
FORBIDDEN_WIDGETS = {"Static", "Label", "Log", "RichLog", "Sparkline", "DataTable", "Markdown", "OptionList", "Button"}


def test_no_widget_that_parses_markup_or_writes_escapes() -> None:
    imported = {
        (path.name, alias.name)
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("textual.widgets")
        for alias in node.names
    }
    assert not [found for found in imported if found[1] in FORBIDDEN_WIDGETS]


def test_threads_live_in_the_workers_alone() -> None:
    starts = re.compile(r"\bThread\(|run_worker|@work\b|create_task|to_thread")
    assert {path.parent.name for path in SOURCES if starts.search(path.read_text(encoding="utf-8"))} <= {"workers"}


def test_toasts_are_shown_in_one_place() -> None:
    calls = [path.name for path in SOURCES for _ in re.finditer(r"notify\(", path.read_text(encoding="utf-8"))]
    assert calls == ["toasts.py"], "toasts go through say()"


def test_toasts_know_no_markup() -> None:
    assert "markup=False" in (UI / "toasts.py").read_text(encoding="utf-8")


def test_the_app_stays_small() -> None:
    methods = [name for name, value in vars(MpstuiApp).items() if callable(value) or isinstance(value, property)]
    assert len(methods) <= 20, methods


def test_keys_do_not_collide_where_they_meet() -> None:
    lists, one = (Scope.RUNS, Scope.ACTIONS, Scope.QUEUE), (Scope.RUN, Scope.ACTIONS, Scope.CHART, Scope.LOG)
    for scopes in (lists, one, (Scope.LAUNCH,)):
        names = [name for key in keys_for(*scopes) if key.action for name in key.keys.split(",")]
        assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)


def test_every_shown_key_explains_itself() -> None:
    for key in KEYS:
        assert bool(key.shown) == bool(key.help), key
    assert [key.footer for key in footer_keys(*Scope)] == sorted(key.footer for key in KEYS if key.footer)


def test_the_first_paint_imports_neither_core_nor_charts() -> None:
    code = "import sys, mpstui.ui.app, mpstui.ui.services; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(done.stdout.split())
    heavy = (
        "torch",
        "numpy",
        "mpstui.core.runs",
        "mpstui.core.formats",
        "mpstui.core.telemetry",
        "mpstui.core.launching",
    )
    assert not [name for name in loaded if name.startswith(heavy)]
    assert not loaded & {"mpstui.ui.screens.run", "mpstui.ui.charting.plot", "psutil"}
