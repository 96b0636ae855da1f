"""Pictures of networks, and the shapes that all pictures are made of."""
