"""How a programmable switch computes: the arithmetic of in-network aggregation."""
