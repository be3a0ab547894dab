"""Notebook 1: how numbers are stored."""
