"""Schedulers that start runs: one module each, behind :class:`.engine.Engine`, used through their command lines."""
