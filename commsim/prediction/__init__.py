"""From a question to its answer: a scenario, the plan of its work, and the results of an engine."""

from __future__ import annotations

from commsim.extensions import House


def register(house: House) -> None:
    """Bring what packages of the core below this one ask for."""
    house.services["network of a table"] = "commsim.prediction.network_tables:network_of_table"
    house.planners["pieces"] = "commsim.prediction.plans.cut_by_size:plan_pieces"
    house.planners["n_partitions"] = "commsim.prediction.plans.cut_by_size:plan_partitions"
