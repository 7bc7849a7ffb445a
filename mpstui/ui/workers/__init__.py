"""The threads of the screen: they read, compare and post messages, and know no widget."""
