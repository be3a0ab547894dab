"""Notebook 3: products by the names of their dimensions."""
