"""Pictures of schedules: hop by hop, and their trees on a network."""
