"""Patterns of messages between hosts, and how a fabric carried them."""

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = (
    "packets",
    "pages",
)
