"""What every test shares: the developer's own machine is shut out, and a busy one fails nothing.

Examples of hypothesis are the same at every run; ``--hypothesis-profile=search`` looks for new ones.
"""

from __future__ import annotations

import gc
import os
import re
import signal
from itertools import count
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings

# Deadlines and slow drawing are about the machine; an example found by chance would be about somebody else's change.
_SAME = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.register_profile("same", _SAME)
settings.register_profile("search", _SAME, derandomize=False, print_blob=True)
settings.load_profile("same")


# A job in the background of a script ignores SIGINT, one under nohup SIGHUP; every process below would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Torch reads it as it is loaded, here and in every program below. In one thread sums come out the same every time; more
# gain nothing for tiny networks, and wait for each other by computing: on a busy machine ten times as long.
os.environ["OMP_NUM_THREADS"] = "1"

# What is imported is garbage nowhere: nobody looks through it, nor for it while tests are collected.
gc.set_threshold(50_000, 20, 50)
gc.disable()

_FOLDERS = count()
_THE_DEVELOPERS_OWN = (
    *(
        "MPSTUI_RUN_ID",
        "MPSTUI_RUN_DIR",
        "MPSTUI_ATTEMPT",
        "MPSTUI_SSH",
        "NO_COLOR",
        "SSH_CONNECTION",
        "COLUMNS",
        "LINES",
    ),
    *("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"),
)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """In a worker: tell of a test that passes once, not five times.

    Each message to the process that prints costs both of them as much as a small test: 10,000 of those took 15.1
    seconds of the processor, and take 10.2. That one was begun, set up, torn down and is over is read by nobody.
    """
    if not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the test's own."""
    return _folder(tmp_path_factory, re.sub(r"\W", "_", request.node.name)[:30])


def _folder(factory: pytest.TempPathFactory, name: str) -> Path:
    """Not ``mktemp`` for each: it looks through the folders of all tests before for a number."""
    folder: Path = factory.getbasetemp() / f"{name}-{next(_FOLDERS)}"
    folder.mkdir()
    return folder


@pytest.fixture(autouse=True)
def _a_home_of_its_own(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the developer's runs, profiles or settings."""
    home = tmp_path_factory.getbasetemp() / f"mpstui-home-{next(_FOLDERS)}"  # made by who writes there: hardly any test
    monkeypatch.setenv("MPSTUI_HOME", str(home))
    for name in _THE_DEVELOPERS_OWN:
        monkeypatch.delenv(name, raising=False)
