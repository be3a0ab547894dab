"""Commands for maintainers; tests call some of their functions."""
