"""The packet engine: packets, queues, losses and retransmissions, in int64 picoseconds."""

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = (
    "sparse",
    "switch_model",
)
