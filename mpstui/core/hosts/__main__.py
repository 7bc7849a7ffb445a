"""``python -P mpstui/core/hosts/__main__.py serve``, or ``relay``: the far end of a line, here or in a bundle."""

import os
import sys

if not __package__:
    _root = os.path.abspath(__file__)  # noqa: PTH100
    for _ in range(4):
        _root = os.path.dirname(_root)  # noqa: PTH120
    sys.path[:0] = [_root, os.path.join(_root, "vendor")]  # noqa: PTH118

if __name__ == "__main__":
    import gc

    gc.disable()  # imports make no garbage, and looking for it costs a tenth of the start

    from contextlib import suppress
    from importlib import import_module

    if globals().get("HAS_JUST_ARRIVED"):
        import time

        from mpstui.core.hosts.bundle import remove_old
        from mpstui.core.model.home import resolve_home

        with suppress(OSError):
            remove_old(resolve_home(os.environ), time.time())
    # One module per word, imported only if asked for; commands belong to a layer above this package.
    _place = {"relay": "mpstui.cli.relay"}.get(sys.argv[1], f"mpstui.core.hosts.{sys.argv[1]}")
    _far = import_module(_place)
    gc.freeze()  # what was imported lives as long as the process
    gc.enable()
    sys.exit(_far.main(sys.argv[2:]))
