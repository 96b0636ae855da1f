"""From a question to its answer: a scenario, the plan of its work, and the results of an engine."""

from commsim.core.locality import rank_grid, rank_groups
from commsim.scenario.plans.dense import Plan
from commsim.scenario.read import with_costs

from .build import prepare
from .scenario import ENGINES, Wish

__all__ = ["ENGINES", "Plan", "Wish", "prepare", "rank_grid", "rank_groups", "with_costs"]
