"""Lines drawn with characters: scales, ticks, a dot canvas. Pure, no Textual."""
