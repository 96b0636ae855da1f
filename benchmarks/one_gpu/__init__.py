"""What one GPU does: matrix products, attention, memory, launches, copies by few multiprocessors, training steps."""
