"""Several jobs on the same links: as periodic rates, and as schedules."""
