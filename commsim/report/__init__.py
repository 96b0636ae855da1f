"""Pictures of networks and schedules."""
