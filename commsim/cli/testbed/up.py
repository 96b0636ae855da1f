"""``commsim testbed up``: build a network out of namespaces."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from typing import TYPE_CHECKING

from commsim.core.units import format_bandwidth

if TYPE_CHECKING:
    from commsim.core.network import Network


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    parser.add_argument("network", metavar="NETWORK", help="topology:key=value,..., preset, or network file")
    parser.add_argument("--routing", metavar="NAME", help="instead of the network's own")
    add_name(parser)


def add_name(parser: argparse.ArgumentParser) -> None:
    """Add the flag that names a testbed."""
    parser.add_argument(
        "--name", default="testbed", metavar="NAME", help="of the testbed, so that two can be up (testbed)"
    )


def routed(network: Network, routing: str | None) -> Network:
    """Return the network with another routing, if one is given."""
    return network if routing is None else dataclasses.replace(network, routing=routing)


def main(args: argparse.Namespace) -> int:
    """Build, and say what is where."""
    from commsim.run.inputs import load_network
    from commsim.testbed.build import build
    from commsim.testbed.layout import lay_out
    from commsim.testbed.places import Place

    place, layout = Place(args.name), lay_out(routed(load_network(args.network), args.routing))
    for warning in build(place, layout):
        print(f"commsim testbed: {warning}", file=sys.stderr)
    network = layout.network
    kind = "bridges" if layout.bridged else "routers"
    print(f"{place.name}: {network.name}, {len(layout.seats)} seats, {len(layout.cables)} cables, switches are {kind}")
    for seat in layout.seats:
        rates = " ".join(format_bandwidth(float(network.bandwidth[port.link])) for port in layout.ports_of(seat))
        print(f"  {network.nodes[seat]:<12} {layout.address(seat)!s:<14} {place.namespace(seat)}  {rates}")
    return 0
