"""Following files that other programs write: by offset, within a budget, whatever happens to the file."""
