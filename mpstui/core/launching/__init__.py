"""From a choice to a running process, and from a key press to an answered request.

Names are imported when they are used: stopping a run, or asking whether it can be stopped, needs no launch plan.
"""
