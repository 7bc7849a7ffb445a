"""Extensions from other packages, found through entry points.

A package installed alongside mpstui adds a log grammar, a metric file, a store of runs, a diagnosis rule or a
telemetry source by naming its module in its own ``pyproject.toml``::

    [project.entry-points."mpstui.log_grammars"]
    kaldi = "my_package.kaldi"
"""

from __future__ import annotations

import logging
import pkgutil
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any

LOG_GRAMMARS = "mpstui.log_grammars"
METRIC_FILES = "mpstui.metric_files"
RUN_STORES = "mpstui.run_stores"
DIAGNOSIS_RULES = "mpstui.diagnosis_rules"
TELEMETRY_SOURCES = "mpstui.telemetry_sources"


@cache
def plugin_modules(group: str) -> tuple[ModuleType, ...]:
    """Return the modules that installed packages offer for ``group``, sorted by entry-point name.

    A module that cannot be imported is skipped and logged: a bug in a plugin must not break everything else.
    """
    modules = []
    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        try:
            module = entry.load()
        except Exception:  # noqa: BLE001 - importing a foreign module may raise anything
            logging.getLogger(__name__).warning("the plugin %s = %s cannot be imported", entry.name, entry.value)
            continue
        if isinstance(module, ModuleType):
            modules.append(module)
    return tuple(modules)


def discovered(package: str, group: str, name: str) -> list[Any]:
    """Return the object called ``name`` from every module of ``package`` and every plugin module of ``group``.

    Modules of ``package`` that begin with an underscore are skipped. A plugin without the object is skipped and logged.
    """
    paths = import_module(package).__path__
    own = [module.name for module in pkgutil.iter_modules(paths) if not module.name.startswith("_")]
    found = [getattr(import_module(f"{package}.{module}"), name) for module in own]
    for plugin in plugin_modules(group):
        if hasattr(plugin, name):
            found.append(getattr(plugin, name))
        else:
            logging.getLogger(__name__).warning("the plugin %s has no %s", plugin.__name__, name)
    return found
