"""Widgets that screens and panels are made of, and the pure functions that turn snapshots into their rows."""
