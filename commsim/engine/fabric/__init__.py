"""Fabrics whose hosts spray packets over many paths and whose switches trim: transports of today, packet by packet."""
