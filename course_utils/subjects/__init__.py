"""What is counted and trained: models, training, checkpoints, machines, and published runs."""
