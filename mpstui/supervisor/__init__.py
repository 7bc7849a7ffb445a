"""One small detached process per run: it starts the trainer, waits, stops it when asked and records how it ended.

Standard library and :mod:`mpstui.wire` alone, everything imported at the start: an upgrade of the package under a
training of three days must not break an import that comes late. Small values are NamedTuples here: with CPython 3.11 a
frozen dataclass costs half a millisecond of every start, a NamedTuple an eighth of that. See docs/supervision.md.
"""
