"""Testing the configured alerts, sent the way the supervisor sends them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ..wire import storage
from ..wire.rundir import RunDir
from .model.errors import OperationError
from .model.home import Home

_LONGEST_SECONDS = 90.0
_TEXT = "alerts arrive here: this is the test that `mpstui alerts test` sends, no training has changed"
_PROGRAM = Path(__file__).resolve().parents[1] / "supervisor" / "notify" / "__main__.py"


def send_test(home: Home) -> tuple[bool, str]:
    """Run the configured hook and webhook once; return whether both succeeded, and the notifier's log.

    Raises:
        OperationError: the home cannot be written, or the notifier did not return in time.
    """
    words = ["test", str(home.state), "1", _TEXT, str(home.settings), str(home.screen_lock)]
    log = RunDir(home.state).alerts_log
    try:
        storage.make_private_folder(home.state)
        log.unlink(missing_ok=True)
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(_PROGRAM), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_LONGEST_SECONDS,
            check=False,
        )
        text = storage.read_text(log) if log.exists() else ""
        return done.returncode == 0, text
    except (OSError, subprocess.TimeoutExpired) as error:
        raise OperationError(f"no test could be sent: {error}") from error
