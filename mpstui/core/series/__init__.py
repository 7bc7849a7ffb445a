"""Curves of any length in bounded memory, and the progress they show. Standard library only, no clock inside."""
