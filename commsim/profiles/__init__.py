"""Profiles of ranks as programs: computation, exchanges and waits, which other networks and more ranks change."""

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = (
    "formats",
    "pages",
    "training",
)
