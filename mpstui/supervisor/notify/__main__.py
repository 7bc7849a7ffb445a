"""``python -I -S mpstui/supervisor/notify/__main__.py EVENT RUN_DIR ATTEMPT TEXT SETTINGS SCREEN_LOCK``."""

import os
import sys

if not __package__:
    # Appended, not put first: a file beside the package must never shadow the standard library.
    _up = os.path.dirname
    sys.path.append(_up(_up(_up(_up(os.path.abspath(__file__))))))  # noqa: PTH100
from mpstui.supervisor.notify.alert import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
