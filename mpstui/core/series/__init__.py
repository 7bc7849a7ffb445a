"""Curves of any length in bounded memory, and the progress told from them. Standard library only, no clock inside."""
