"""For real: the same schedules executed by MPI and torch.distributed, beside the library's native collective."""

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = (
    "formats",
    "live",
    "nccl",
    "packets",
    "pages",
    "ranking",
    "sparse",
    "training",
)
