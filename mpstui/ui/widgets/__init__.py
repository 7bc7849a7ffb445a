"""One panel a file: a pure function from a snapshot to rows, and a thin widget that paints them."""
