"""The headless monitor: everything mpstui knows, independent of any screen."""
