"""Notebook 5: what the backward pass costs, and what is kept for it."""
