"""Bind a network, a schedule, a placement and an engine into a result."""

from commsim.core.placement import rank_grid, rank_groups

from .bind import predict, prepare, with_costs
from .prepared import ENGINES, Prepared

__all__ = ["ENGINES", "Prepared", "predict", "prepare", "rank_grid", "rank_groups", "with_costs"]
