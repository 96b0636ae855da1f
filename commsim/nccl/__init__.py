"""What NCCL itself would choose on a network, and why."""

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = ("formats",)
