"""The run store: what is known about each run, derived from its witnesses and read from its files."""
