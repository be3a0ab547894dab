"""What is counted and trained: models, their training and checkpoints, machines, and runs that others published."""
