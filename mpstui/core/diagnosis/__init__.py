"""Explaining crashes: what ended a training, the evidence for that, and what to do about it.

``engine.diagnose(evidence)`` weighs the rules of ``rules/`` against an ``Evidence``, which comes from a log file or a
run directory (``evidence.py``). Importing this package loads no rule and compiles no pattern: both happen on the first
diagnosis.
"""
