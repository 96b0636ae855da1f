"""Several jobs on the same links: as rates that repeat, and as schedules."""
