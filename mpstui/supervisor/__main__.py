"""``python -I -S mpstui/supervisor/__main__.py RUN_DIR``: isolated from the caller's site-packages and environment.

With ``--each`` instead, the run directories are named on standard input: see :func:`mpstui.supervisor.main.start_each`.
"""

import gc
import os
import sys

if not __package__:
    # Appended, not put first: what lies beside the package must never stand in for the standard library.
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))  # noqa: PTH100, PTH120

gc.disable()  # imports make no garbage, and looking for it costs a tenth of the start
from mpstui.supervisor.main import main  # noqa: E402

gc.freeze()  # what was imported stays; looking through it again would also copy every page that forks share
gc.enable()

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
