"""How labs draw: shapes and words as SVG, places for words by the font's own widths, plots, and the still picture."""
