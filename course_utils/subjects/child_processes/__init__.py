"""Work in a process of its own, which can be killed: products that are timed, training steps."""
