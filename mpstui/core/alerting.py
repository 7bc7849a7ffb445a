"""Sending an alert by hand, through the very program that the supervisor starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ..wire.rundir import RunDir
from .errors import OperationError
from .home import Home

TEST_SECONDS = 90.0
TEXT = "alerts arrive here: this is the test that `mpstui alerts test` sends, no training has changed"
_PROGRAM = Path(__file__).resolve().parents[1] / "supervisor" / "notify" / "__main__.py"


def send_test(home: Home) -> str:
    """Run the hook and the webhook of the settings once and return what came of them, one line each.

    Raises:
        OperationError: the home cannot be written, or the notifier did not come back.
    """
    words = ["test", str(home.state), "1", TEXT, str(home.settings), str(home.screen_lock)]
    log = RunDir(home.state).alerts_log
    try:
        home.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        log.unlink(missing_ok=True)
        subprocess.run(
            [sys.executable, "-I", "-S", str(_PROGRAM), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=TEST_SECONDS,
            check=False,
        )
        return log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    except (OSError, subprocess.TimeoutExpired) as error:
        raise OperationError(f"no test could be sent: {error}") from error
