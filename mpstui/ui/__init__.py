"""The screen: a Textual program over frozen snapshots. State flows down as snapshots, events flow up as messages."""
