"""Work in a process of its own, which can be killed, and what the course has done there."""
