"""How a switch computes: slot pools, quantisation, wire formats, the hardware's budget."""
