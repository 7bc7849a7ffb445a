"""Other machines: the same core runs there, and what it knows comes here over one line."""
