"""Callbacks inside the real frameworks: `make integrations`."""
