"""What crosses a process boundary: records, heartbeats, run-directory names, locks, atomic writes.

Standard library only, Python 3.9+, relative imports only: the agent carries these files into other people's Pythons,
and the supervisor must start in a few milliseconds and survive an upgrade of everything around it.
"""
