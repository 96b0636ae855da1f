"""What NCCL itself would choose on a network, and why."""

from __future__ import annotations

from commsim.extensions import House

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = ("formats",)


def register(house: House) -> None:
    """Bring what NCCL and RCCL choose."""
    house.planners["nccl"] = "commsim.nccl.plans.plan_nccl:plan_nccl"
    house.remarks["interval"] = "commsim.nccl.interval_remarks:of_intervals"
    house.commands(
        "commsim.nccl.cli.nccl_choices", nccl="print which algorithm and protocol NCCL chooses at each size, and why"
    )
    faulty = "dgx-h100@leaf_spine:machines=8,n_leaves=8,n_spines=8"  # README's question, whose flows are alike in part
    house.warmup(
        "flow engine",
        "run --topology dgx-h100@star:machines=2 -b 1M -e 1M",
        f"run nccl --topology {faulty} -b 1G -e 1G --fail links:1",
    )
