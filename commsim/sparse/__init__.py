"""Which parts of a tensor are not zero, what they cost on the wire, and what becomes of them in a schedule."""

from __future__ import annotations

from commsim.extensions import House

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = ()


def register(house: House) -> None:
    """Bring sparse and compressed data."""
    house.planners["sparse"] = "commsim.sparse.plan_sparse:plan_sparse"
    house.works["compressor"] = "commsim.sparse.plan_compressed:CompressedWork"
    house.services["arguments of data"] = "commsim.sparse.sparse_data:split_data"
    house.remarks["union_density"] = "commsim.sparse.plan_sparse:of_density"
