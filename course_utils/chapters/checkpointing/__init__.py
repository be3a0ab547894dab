"""Notebook 8: recomputing, saving, and a whole plan."""
