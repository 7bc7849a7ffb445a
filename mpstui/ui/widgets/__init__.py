"""The widgets of screens and panels, and the pure functions that turn snapshots into their rows."""
