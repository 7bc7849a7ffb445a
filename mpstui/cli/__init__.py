"""The command line: one module per command, or per few that belong together, imported when needed."""
