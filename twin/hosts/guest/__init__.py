"""Code that runs on the simulated hosts themselves: the GPU layer. Standard library only."""
