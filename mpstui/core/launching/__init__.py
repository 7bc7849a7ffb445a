"""From a choice to a running process, and from a key press to an answered request.

Names are imported when they are used: to stop a run, or to say whether it can be stopped, takes no plan of a launch.
"""
