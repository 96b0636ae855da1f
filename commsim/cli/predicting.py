"""The flags of a prediction, for verbs that hold something against it: the network, the algorithm, and the costs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from commsim.core.network import ROUTINGS

from .costs import add_cost_arguments, read_costs

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.run import Prepared


def add_prediction_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags, with the meaning that ``commsim run`` gives them."""
    add = parser.add_argument
    add("--topology", metavar="NAME:key=value,...|FILE", help="network, such as star:n_hosts=8")
    add(
        "--collective",
        metavar="NAME[:key=value,...]|FILE.py[:NAME]",
        help="algorithm that is predicted; of a file with several, which",
    )
    add("--ranks", type=int, metavar="N", help="ranks (as the file says; OSU's tables do not)")
    add("--placement", default="packed", help="packed, spread, random or a file (packed)")
    add("--routing", choices=ROUTINGS, help="instead of the network's own")
    add("--engine", default="flow", help="flow, packet, alpha-beta or closed-form (flow)")
    add("--seed", type=int, default=0, help="of random placement, and of hashes in routing (0)")
    add_cost_arguments(parser)


def load_costed_network(args: argparse.Namespace) -> Network:
    """Build the network that --topology names, with the costs of messages that the flags say."""
    from commsim.inputs import load_network
    from commsim.run import with_costs

    return with_costs(load_network(args.topology), **read_costs(args))


def prepare_as_asked(args: argparse.Namespace, network: Network, n_ranks: int | None) -> Prepared:
    """Place --collective on the network."""
    from commsim.run import prepare

    return prepare(
        args.collective,
        network,
        n_ranks=n_ranks,
        placement=args.placement,
        routing=args.routing,
        seed=args.seed,
    )
