"""What each package may pull in, proved in fresh interpreters: static contracts cannot see lazy or native imports."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STANDARD_LIBRARY_ONLY = ("mpstui.wire", "mpstui.agent", "mpstui.supervisor")
IMPORT_EVERYTHING = """
import importlib, json, pkgutil, sys
sys.path.insert(0, {root!r})
before = set(sys.modules)
package = importlib.import_module({package!r})
for module in pkgutil.walk_packages(package.__path__, {package!r} + "."):
    if not module.name.endswith("__main__") and ".boot" not in module.name:
        importlib.import_module(module.name)
print(json.dumps(sorted({{name.partition(".")[0] for name in set(sys.modules) - before}})))
"""


def top_level_modules_after_importing(package: str, *flags: str) -> set[str]:
    """Import a package with all its modules in a fresh interpreter and name every top-level module that came along."""
    code = IMPORT_EVERYTHING.format(root=str(ROOT), package=package)
    done = subprocess.run([sys.executable, *flags, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("package", STANDARD_LIBRARY_ONLY)
def test_runs_on_the_standard_library_alone(package: str) -> None:
    foreign = top_level_modules_after_importing(package, "-I", "-S") - set(sys.stdlib_module_names) - {"mpstui"}
    assert not foreign


def test_core_brings_no_screen_and_no_torch() -> None:
    assert not top_level_modules_after_importing("mpstui.core") & {"textual", "rich", "torch", "trainer", "numpy"}


def test_the_screen_brings_no_torch() -> None:
    assert not top_level_modules_after_importing("mpstui.ui") & {"torch", "trainer", "numpy"}


def test_a_listing_command_loads_neither_screen_nor_watcher() -> None:
    code = "import json, sys; from mpstui.cli import ps; print(json.dumps([m.partition('.')[0] for m in sys.modules]))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True, cwd=ROOT
    )
    loaded = set(json.loads(done.stdout))
    assert not loaded & {"textual", "rich", "torch", "watchfiles", "tomlkit"}
