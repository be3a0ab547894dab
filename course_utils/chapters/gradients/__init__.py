"""Notebook 5: what the way back costs, and what is kept for it."""
