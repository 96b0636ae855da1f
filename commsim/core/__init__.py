"""The nouns: Network, Schedule, Placement, Result, and what they need."""
