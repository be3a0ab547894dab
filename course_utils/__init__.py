"""Where the memory and the compute go when a neural network is trained."""
