"""The only threads of the screen: they read, compare and post messages; none of them knows a widget."""
