"""How labs draw: shapes and words as SVG, the space that words take, plots, and still pictures."""
