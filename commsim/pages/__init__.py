"""Pages, figures and timelines of results."""

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = (
    "formats",
    "jobs",
    "packets",
    "placement",
    "ranking",
    "real",
    "sweep",
    "traffic",
)
