"""The project as a whole: its house, notebooks, prose and tools."""
