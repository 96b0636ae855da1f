"""Which algorithm is best, by how much, and how near any is to the bound."""

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = (
    "experts",
    "formats",
    "nccl",
    "packets",
    "real",
    "sparse",
)
