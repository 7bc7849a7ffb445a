"""Whole screens: which panels they have, where these are, and what each key does."""
