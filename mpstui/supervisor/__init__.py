"""One small detached process per run: it starts the trainer, waits, stops it when asked and records how it ended.

It uses only the standard library and :mod:`mpstui.wire`, and imports everything at the start: a late import could break
if the package is upgraded during a three-day training. Small values are NamedTuples: with CPython 3.11 a frozen
dataclass adds half a millisecond to every start, a NamedTuple an eighth of that. See docs/supervision.md.
"""
