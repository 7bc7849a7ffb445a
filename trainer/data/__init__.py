"""Data sets: read from disk, or generated and said to be so."""
