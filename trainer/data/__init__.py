"""Data sets: read from disk, or generated and labelled as such."""
