"""Callbacks and loggers for training frameworks: one file each, which imports only its framework and ``report``.

They report what only the framework knows (totals, epochs, the best metric, checkpoints, samples per second), and carry
out a run's requests: save, evaluate, clear the cache, stop. Outside a run that mpstui started they do nothing.
"""
