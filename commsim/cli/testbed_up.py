"""``commsim testbed up``: build a network out of namespaces."""

from __future__ import annotations

import argparse
import sys

from commsim.core.units import format_bandwidth


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    parser.add_argument("network", metavar="NETWORK", help="topology:key=value,..., preset, or network file")
    add_name(parser)


def add_name(parser: argparse.ArgumentParser) -> None:
    """Add the flag that names a testbed."""
    parser.add_argument(
        "--name", default="testbed", metavar="NAME", help="of the testbed, so that two can be up (testbed)"
    )


def main(args: argparse.Namespace) -> int:
    """Build, and say what is where."""
    from commsim.inputs import load_network
    from commsim.testbed.build import build
    from commsim.testbed.layout import lay_out
    from commsim.testbed.places import Place

    place, layout = Place(args.name), lay_out(load_network(args.network))
    for warning in build(place, layout):
        print(f"commsim testbed: {warning}", file=sys.stderr)
    network = layout.network
    kind = "bridges" if layout.bridged else "routers"
    print(f"{place.name}: {network.name}, {len(layout.seats)} seats, {len(layout.cables)} cables, switches are {kind}")
    for seat in layout.seats:
        rates = " ".join(format_bandwidth(float(network.bandwidth[port.link])) for port in layout.ports_of(seat))
        print(f"  {network.nodes[seat]:<12} {layout.address(seat)!s:<14} {place.namespace(seat)}  {rates}")
    return 0
