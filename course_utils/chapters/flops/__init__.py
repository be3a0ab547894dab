"""Notebook 4: how long a product takes."""
