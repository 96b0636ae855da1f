"""Networks as they exist: lists of cables, discovered fabrics, and inventories."""
