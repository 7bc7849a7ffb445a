"""The run store: what is known about each run, told from its witnesses and read from its files."""
