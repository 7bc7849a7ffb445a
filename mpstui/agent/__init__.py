"""Code that lives inside a training process: it reports, answers requests and never harms the training.

Standard library only, Python 3.9+, relative imports only; importing this package imports nothing.
"""
