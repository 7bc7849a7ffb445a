"""The supervisor's program with less patience, so that a stall can be waited for."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parents[2]))
    from mpstui.supervisor import alerts
    from mpstui.supervisor.main import main

    alerts.POLL_SECONDS, alerts.OVERDUE_MARGIN_SECONDS = 0.2, 0.5
    sys.exit(main(sys.argv[1:]))
