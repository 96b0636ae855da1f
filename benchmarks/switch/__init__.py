"""The switch as it runs: the kernel's program between namespaces, training through it, and its steady rates."""
