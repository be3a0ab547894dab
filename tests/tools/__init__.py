"""What maintainers run, and nobody asserts."""
