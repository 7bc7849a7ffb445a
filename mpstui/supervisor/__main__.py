"""``python -I -S mpstui/supervisor/__main__.py RUN_DIR``: isolated from the caller's site-packages and environment.

With ``--each`` instead, the run directories are named on standard input: see :func:`mpstui.supervisor.main.start_each`.
"""

import gc
import importlib
import os
import sys
import types

if not __package__:
    # Appended, not put first: files beside the package must not shadow the standard library.
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))  # noqa: PTH100, PTH120


class _Unasked(types.ModuleType):
    """Stands in for a module whose functions we normally never call; the first call loads the real one.

    ``pathlib`` imports ``urllib.parse`` for links, ``subprocess`` imports ``locale`` for text. With everything that
    these import, they take a fifteenth of a supervisor's memory.
    """

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **named: getattr(importlib.import_module(self.__name__), name)(*args, **named)


_unasked = [name for name in ("urllib.parse", "locale") if name not in sys.modules]
sys.modules.update({name: _Unasked(name) for name in _unasked})
gc.disable()  # imports make no garbage, and looking for it takes a tenth of the start
from mpstui.supervisor.main import main  # noqa: E402

for _name in _unasked:
    del sys.modules[_name]  # whoever imports it from now on gets the real one
gc.freeze()  # what was imported stays; scanning it again would also copy every page that forks share
gc.enable()

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
