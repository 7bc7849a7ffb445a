"""Launch profiles: TOML files that say how a program is started, told its device, resumed and watched.

Names are imported when they are used.
"""
