"""The packet engine: packets, queues, losses and retransmissions, in int64 picoseconds."""

from __future__ import annotations

from commsim.extensions import House

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = (
    "sparse",
    "switch_model",
)


def register(house: House) -> None:
    """Bring packets, and what aggregates in switches."""
    house.reports["packet"] = "commsim.packets.beside_table:PACKET"
    house.planners["systems"] = "commsim.packets.aggregated.plan_aggregated:plan_aggregated"
    house.flags["packets"] = "commsim.packets.cli.packet_flags:PACKETS"
    star = "run ring_all_reduce --topology star:n_hosts=4 -b 64K -e 64K --engine packet"
    more = ("", " --transport dctcp", " --transport dcqcn", " --preset uec")
    house.warmup("packets and switches", *(star + words for words in more))
    house.engines["packet"] = "commsim.packets.simulation:PacketEngine"
    house.services["options of packets"] = "commsim.packets.packet_options:transport_of"
    house.services["arguments of systems"] = "commsim.packets.aggregated.systems:split_system"
    house.services["value Fabric"] = "commsim.packets.links.queues:Fabric"
    house.services["value Spraying"] = "commsim.packets.transports.spraying:Spraying"
