"""The telemetry sources, one file each: a pure parser and a thin call around it."""
