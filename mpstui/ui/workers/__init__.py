"""The threads of the screen: they read, compare and post messages, and know nothing of widgets."""
