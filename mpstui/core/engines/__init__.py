"""Schedulers that start runs: one file each behind :class:`.engine.Engine`, asked through their own command lines."""
