"""Callbacks and loggers for training frameworks: one file each, which imports its framework and ``report`` alone.

They carry what only the framework knows (totals, epochs, the best metric, checkpoints, samples a second), and carry out
what is asked of a run: save, evaluate, clear the cache, stop. Without a run that mpstui started they do nothing.
"""
