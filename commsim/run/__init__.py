"""Bind a network, a schedule, a placement and an engine into a result."""

from commsim.core.rank_groups import rank_grid, rank_groups

from .bind import predict, prepare
from .build import GIVEN
from .prepared import ENGINES, Prepared
from .with_costs import with_costs

__all__ = ["ENGINES", "GIVEN", "Prepared", "predict", "prepare", "rank_grid", "rank_groups", "with_costs"]
