"""What is under way on the network of an emulation, and when it ends."""
