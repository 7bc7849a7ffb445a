"""From the settings file to the hook, through the real command line, with no screen open."""

from __future__ import annotations

import json
import sys

import pytest

from tests.end_to_end.conftest import CommandLine
from tests.waiting import wait_until

pytestmark = pytest.mark.end_to_end


def test_a_crash_of_a_bare_command_reaches_the_hook(mpstui: CommandLine) -> None:
    told = mpstui.cwd / "told"
    hook = [sys.executable, "-c", f"import sys; open({str(told)!r}, 'a').write(sys.argv[1])", "{text}"]
    mpstui.home.mkdir()
    (mpstui.home / "settings.toml").write_text(f'[alerts]\nwhen = "no_screen"\nhook = {json.dumps(hook)}\n')
    started = mpstui.call("run", "--name", "short", "--", sys.executable, "-c", "raise SystemExit(5)")
    assert started.returncode == 0, started.stderr
    wait_until(lambda: told.exists() and told.read_text(), what="the hook")
    assert told.read_text() == "short crashed: exit code 5"


def test_a_mistake_in_the_settings_starts_the_run_all_the_same(mpstui: CommandLine) -> None:
    mpstui.home.mkdir()
    (mpstui.home / "settings.toml").write_text("[alerts\n")
    done = mpstui.call("run", "--name", "short", "--", sys.executable, "-c", "pass")
    assert done.returncode == 0, done.stderr
    mpstui.wait_state("short", "finished")
    log = next((mpstui.home / "runs").iterdir()) / "alerts.log"
    wait_until(lambda: log.exists() and "no alert was sent" in log.read_text(), what="the word of the notifier")
