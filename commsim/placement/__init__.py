"""Placement of jobs and their start times: circles, link scores, time-shifts, candidates."""

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = (
    "formats",
    "live",
    "pages",
    "training",
)
