"""Explaining crashes: what ended a training, on what evidence, and what to do about it.

``diagnose(evidence)`` weighs the rules of ``rules/`` against an ``Evidence``; the evidence comes from a log file
(``log_file.evidence_from_log``) or a run directory (``for_run.evidence_from_run_dir``). Importing this package loads no
rule and compiles no pattern: both happen on the first diagnosis. Names are imported when they are used.
"""
