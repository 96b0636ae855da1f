"""Which parts of a tensor are not zero, what they cost on the wire, and what becomes of them in a schedule."""

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = ()
