"""From a choice to a running process, and from a key press to an answered request.

This package imports nothing by itself: stopping a run, or finding out whether it can be stopped, needs no launch plan.
"""
