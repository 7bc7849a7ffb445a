"""One file a telemetry source: a pure parser and the thin call around it."""
