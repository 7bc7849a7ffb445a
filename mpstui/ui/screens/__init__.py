"""Whole screens: which panels, where, and what each key does."""
