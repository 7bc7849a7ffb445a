"""Readings of the machine and of the trainers' processes: unknown is None with a reason, never 0."""
