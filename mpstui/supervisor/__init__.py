"""One small detached process per run: it starts the trainer, waits, stops it when asked and records how it ended.

Standard library and :mod:`mpstui.wire` only, everything imported at the start: when the package is upgraded during a
training of three days, a late import must not break. Small values are NamedTuples here: with CPython 3.11 a frozen
dataclass costs half a millisecond of every start, a NamedTuple an eighth of that. See docs/supervision.md.
"""
