"""Algorithms whose reducing participants sit on switches."""

from collectives import COLLECTIVES

# Systems of switches without a collective of their own have the generic reduction tree.
COLLECTIVES.when_complete("commsim.packets.aggregated.systems:register_systems")
