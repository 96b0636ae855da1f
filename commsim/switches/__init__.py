"""Switches that aggregate, packet by packet: ``commsim switch``; their arithmetic is in switch_model."""

from __future__ import annotations

from commsim.extensions import House

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = (
    "packets",
    "pages",
    "sparse",
    "switch_model",
)


def register(house: House) -> None:
    """Bring switches that aggregate."""
    house.commands(
        "commsim.switches.cli",
        switch="switches that aggregate: simulate, prove, budget, serve, all-reduce, status, pcap",
    )
    house.warmup(
        "packets and switches",
        "switch simulate --workers 4 --size 64KiB",
        "switch simulate --workers 4 --size 64KiB --system atp --loss 1%",
    )
    house.warmup(
        "proofs of switches",
        "switch prove --slots 1 --chunks 2",
        "switch prove --slots 1 --chunks 1 --system atp",
        own=True,
    )
