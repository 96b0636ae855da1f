"""Files that other tools of the field read and write; commsim/core/files has our own."""

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = (
    "packets",
    "profiles",
    "ranking",
    "sweep",
    "training",
)
