"""Trees that carry what every rank needs as fast as the network allows: exact, in integers.

The steps, in order: rates become integers, the worst cut is found, switches are split off, trees are packed, and trees
are put back on links.
"""
