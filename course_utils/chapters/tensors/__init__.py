"""Notebook 2: what a tensor is in memory."""
