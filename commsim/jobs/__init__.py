"""Several jobs and background traffic on one network, in one run of the flow or the packet engine."""

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = ("packets",)
