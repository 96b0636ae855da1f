"""Training workloads: iterations of workers, queues of gradients, several jobs on one network."""

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = (
    "jobs",
    "packets",
    "placement",
    "ranking",
    "sparse",
)
