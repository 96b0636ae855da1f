"""A cluster over weeks: jobs that come, wait, run and share links."""
