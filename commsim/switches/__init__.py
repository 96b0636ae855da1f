"""Switches that aggregate, packet by packet: ``commsim switch``; their arithmetic is in switch_model."""

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = (
    "packets",
    "pages",
    "sparse",
    "switch_model",
)
