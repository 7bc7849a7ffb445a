"""The screen: a Textual program over frozen snapshots. State comes down as snapshots, wishes go up as messages."""
