"""Real gradients of small models: all-reduces predicted and executed, density, training with compressors."""
