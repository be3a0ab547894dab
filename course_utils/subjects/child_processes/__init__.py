"""Work in a process of its own, which can be killed, and the course's work of this kind."""
