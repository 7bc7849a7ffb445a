"""``python -I -S mpstui/supervisor/__main__.py RUN_DIR``: isolated from the caller's site-packages and environment."""

import gc
import os
import sys

if not __package__:
    # Appended, not put first: what lies beside the package must never stand in for the standard library.
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))  # noqa: PTH100, PTH120

gc.disable()  # imports make no garbage, and looking for it costs a tenth of the start
from mpstui.supervisor.main import main  # noqa: E402

gc.enable()

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
