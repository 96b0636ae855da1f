"""Draw the trees of one rank on the network, along the routes that a schedule's file pins."""

from __future__ import annotations

import numpy as np

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.placement import Placement
from commsim.core.schedule import REDUCE, Schedule
from commsim.pages.palette import COPY
from commsim.pages.palette import REDUCE as REDUCE_COLOUR
from commsim.pages.pictures.boxes import Boxes
from commsim.pages.pictures.cables import beside
from commsim.pages.pictures.layout import BoxLayout
from commsim.pages.pictures.network_picture import draw_network
from commsim.pages.pictures.picture import Disc, Line, Picture, Shape

# Trees side by side on a cable, in pixels; and beyond how many of them a picture cannot be read.
_APART, MAX_TREES = 3.5, 12

# Sender, receiver, and whether the message is added.
Arc = tuple[int, int, bool]


def trees_of(schedule: Schedule, rank: int) -> dict[int, list[Arc]]:
    """Return the messages of every tree of a rank, by channel: down from it, or up to it.

    Raises
    ------
    InputError
        If the rank has no tree: no channel whose messages all start, or all end, at it.
    """
    kinds = [np.unique(hop[["channel", "src", "dst", "op"]]) for hop in schedule.rounds()]
    arcs: dict[int, list[Arc]] = {}
    for channel, src, dst, op in dict.fromkeys(row for hop in kinds for row in hop.tolist()):
        if src != dst:
            arcs.setdefault(channel, []).append((src, dst, op == REDUCE))
    trees = {}
    for channel, tree in arcs.items():
        # Sums go up: their root is the receiver that never sends.
        from_root = [(dst, src) if adds else (src, dst) for src, dst, adds in tree]
        below = [b for _, b in from_root]
        if len(below) == len(set(below)) and {a for a, _ in from_root} - set(below) == {rank}:
            trees[channel] = tree
    if not trees:
        raise InputError(
            f"{schedule.name}: rank {rank} has no tree of its own in it; only schedules of trees are drawn so"
        )
    return trees


def draw_trees(network: Network, schedule: Schedule, placement: Placement, rank: int) -> tuple[Picture, str]:
    """Draw them.

    Parameters
    ----------
    network : Network
        Network of the trees.
    schedule : Schedule
        Every tree is a channel.
    placement : Placement
        Placement of the ranks, with a route for each message.
    rank : int
        Rank of the trees.

    Returns
    -------
    Picture, str
        The second says how many of how many trees are drawn.

    Raises
    ------
    InputError
        Without pinned routes, or if the rank has no tree.
    """
    if placement.routes is None:
        raise InputError(f"{schedule.name} pins no routes: trees are drawn of files that commsim synthesize writes")
    if not 0 <= rank < schedule.n_ranks:
        raise InputError(f"--rank must be 0..{schedule.n_ranks - 1}, got {rank}")
    every = trees_of(schedule, rank)
    trees = dict(list(every.items())[:MAX_TREES])
    routes = placement.routes
    row = {tuple(ends): i for i, ends in enumerate(routes.ends.tolist())}

    def over(boxes: Boxes, at: BoxLayout) -> list[Shape]:
        shapes: list[Shape] = []
        for number, (channel, tree) in enumerate(trees.items()):
            offset = _APART * (number - (len(trees) - 1) / 2)
            for src, dst, adds in tree:
                i = row[src, dst, channel]
                links = routes.link[routes.first[i] : routes.first[i + 1]]
                title = f"tree {number}: {'sum' if adds else 'copy'} from rank {src} to rank {dst}"
                colour = REDUCE_COLOUR if adds else COPY
                for link in links.tolist():
                    ends = [int(boxes.of_node[node[link]]) for node in (network.src, network.dst)]
                    (x0, y0), (x1, y1) = beside([(float(at.x[box]), float(at.y[box])) for box in ends], offset)
                    shapes.append(Line(((x0, y0), (x1, y1)), colour, 1.8, title=title))
                    # A dot two thirds of the way shows which way the message goes.
                    shapes.append(Disc(x0 + (x1 - x0) * 0.66, y0 + (y1 - y0) * 0.66, 2.6, colour, colour, title))
        return shapes

    picture, _ = draw_network(network, collapse=False, over=over)
    text = "blue is copied, orange summed; dots are nearer to receivers"
    return picture, f"{len(trees)} of {len(every)} trees of rank {rank}; {text}"
