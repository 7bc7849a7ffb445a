"""How values look to a person: numbers, sizes, durations, states. Pure text, no screen."""
