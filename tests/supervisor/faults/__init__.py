"""Fault injection: ``python -m tests.supervisor.faults --runs N --seed S``.

Every scene breaks something around a real supervisor and a real trainer and then asks four questions: is the state that
the monitor derives right, is anything left alive, did a bystander get a signal, was an exit code lost that a living
supervisor had seen.
"""
