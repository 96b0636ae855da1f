"""Programs that run unchanged on a network that does not exist, with a virtual clock."""
