"""How a programmable switch computes: the arithmetic of in-network aggregation."""

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = ()
