"""Ways to all-reduce a tensor on a network, ranked; their bottlenecks, and the densities at which the best changes."""
