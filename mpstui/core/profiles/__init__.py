"""Launch profiles: TOML files that say how a program is started, put on a device, resumed and watched."""
