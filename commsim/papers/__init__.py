"""Published figures beside ours: one file per paper, and the measures that its figures are of."""

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = (
    "packets",
    "pages",
    "placement",
    "sparse",
    "switch_model",
    "traffic",
    "training",
)
