"""What libraries of expert parallelism cost: DeepEP's kernels and TensorRT-LLM's, from constants of few kinds."""

from __future__ import annotations

from commsim.extensions import House

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = ()


def register(house: House) -> None:
    """Bring exchanges of experts."""
    house.planners["library"] = "commsim.experts.plan_experts:plan_experts"
