"""Trees that carry what every rank needs as fast as the network allows: exact, in integers.

The order of the steps: rates as integers, the worst cut, switches split off, trees packed, trees put back on links.
"""
