"""The headless monitor: everything mpstui knows, without a screen."""
