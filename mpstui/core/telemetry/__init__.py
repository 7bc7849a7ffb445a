"""The machine and the trainers' processes, told truly: unknown is None with a reason, never 0."""
