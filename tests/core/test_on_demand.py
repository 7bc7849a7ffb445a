"""Packages that import their names when they are asked for."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import pytest

PACKAGES = ("mpstui.core.launching", "mpstui.core.profiles", "mpstui.core.diagnosis", "mpstui.core.formats")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_is_there(package: str) -> None:
    module = importlib.import_module(package)
    for name in module.__all__:
        assert getattr(module, name) is not None


@pytest.mark.parametrize("package", PACKAGES)
def test_no_name_is_hidden_by_a_module(package: str) -> None:
    """Importing a module binds it in its package: a name on demand that is called the same would turn into it."""
    module = importlib.import_module(package)
    modules = {found.name for found in pkgutil.iter_modules(module.__path__)}
    assert not modules & set(module.__all__)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_package_alone_loads_none_of_its_modules(package: str) -> None:
    code = f"import sys, {package}; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert not [name for name in done.stdout.split() if name.startswith(f"{package}.")]


def test_an_unknown_name_is_said_by_name() -> None:
    with pytest.raises(ImportError, match="no_such_thing"):
        exec("from mpstui.core.launching import no_such_thing")
