"""From a question to its answer: a scenario, the plan of its work, and the results of an engine."""

from commsim.core.locality import rank_grid, rank_groups
from commsim.scenario.given_costs import with_costs
from commsim.scenario.plans.dense import Plan

from .bind import predict, prepare
from .wish import ENGINES, Wish

__all__ = ["ENGINES", "Plan", "Wish", "predict", "prepare", "rank_grid", "rank_groups", "with_costs"]
