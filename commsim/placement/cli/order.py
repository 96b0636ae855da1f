"""``commsim place order``: the order of ranks on given nodes in which rings and trees cross racks least."""

from __future__ import annotations

from pathlib import Path

from commsim.cli.flags import TOPOLOGY, WithJson, flag
from commsim.cli.flags.faults import Hashes
from commsim.core.errors import InputError
from commsim.core.limits import is_there
from commsim.core.names.hostlist import spelled_out, split_hosts
from commsim.core.names.nodes_and_links import host_names
from commsim.core.network import Network
from commsim.core.remark import Remark
from commsim.core.units import format_time, parse_nccl_size
from commsim.report.answer import Answer, Facts, comments, remarks
from commsim.report.hash_columns import ends_of_hashes

MAX_BYTES = 16 * 2**20


class PlaceOrderConfig(Hashes, WithJson):
    """All flags of ``commsim place order``."""

    nodes: str = flag(
        "nodes",
        metavar="NODE,NODE,...|FILE",
        help="node of each rank, in rank order, also n[01-08]; a machine stands for its GPUs; in a file, one per line",
    )
    topology: str = flag(required=True, metavar=TOPOLOGY, help="network that the nodes are in")
    size: str = flag("-b", default="64MiB", metavar="SIZE", help="size of the collective")
    collective: str = flag(
        default="ring_all_reduce", metavar="NAME", help="collective for which the orders are compared"
    )
    seed: int = flag(default=0, metavar="N", help="seed of hashes in routing")
    output: str | None = flag("-o", metavar="FILE", help="write the order, one node per line")


def run(config: PlaceOrderConfig) -> Answer:
    """Order the ranks."""
    from commsim.placement.order import order_ranks
    from commsim.prediction.inputs import load_network
    from commsim.prediction.plans.draws import HASHES

    network = load_network(config.topology)
    nodes = _nodes(config.nodes, network)
    rank_order = order_ranks(
        network, nodes, float(parse_nccl_size(config.size, "--size")), collective=config.collective, seed=config.seed,
        hashes=config.hashes or HASHES,
    )  # fmt: skip
    crossed = {
        f"crossings of {name}s": f"{n} before, {rank_order.crossings_after[name]} after"
        for name, n in rank_order.crossings_before.items()
        if n
    }
    drawn = {"before": rank_order.hashes_before, "after": rank_order.hashes_after}
    gain = f"{rank_order.gain:.3f}x"
    facts = {
        "order": " ".join(rank_order.order[:32]) + (" ..." if len(rank_order.order) > 32 else ""),
        **crossed,
        "time": f"{format_time(rank_order.time_before)} before, {format_time(rank_order.time_after)} after, {gain}",
        **{f"time {when}": ends_of_hashes(of)[2:] for when, of in drawn.items() if of is not None},
    }
    notes, written = list[Remark](), list[str]()
    if rank_order.ranks == tuple(range(len(nodes))):
        notes.append(Remark("order-kept", "the order given is kept: no other is faster or crosses less", needed=True))
    if rank_order.how == "ring":
        text = "times are rounds of a ring by their most loaded link, and not simulated"
        notes.append(Remark("not-simulated", text, needed=True))
    if config.output:
        from commsim.core.files.whole_files import replacing

        with replacing(config.output) as out:
            out.write("".join(f"{name}\n" for name in rank_order.order).encode())
        written.append(f"{config.output}: written")
    return Answer([Facts(facts), *comments(written), *remarks(notes)], [rank_order.row()])


def _nodes(text: str, network: Network) -> list[str]:
    """Read a node for each rank from the command line, or from a file that is there; machines stand for their GPUs."""
    from commsim.core.files.whole_files import read_text
    from commsim.prediction.node_lists import ranks_named

    if "," not in text and is_there(text) and Path(text).is_file():
        words = [line.strip() for line in read_text(Path(text), MAX_BYTES).splitlines() if line.strip()]
    else:
        words = [word.strip() for word in split_hosts(text)]
    if not all(words):
        raise InputError(f"nodes are names such as h0,h4,h1 or n[01-08], or an existing file; got {text!r}")
    names, hosts = spelled_out(words), host_names(network)
    nodes, machines = {network.nodes[i] for i in network.endpoints}, {hosts[i] for i in network.endpoints}
    # A host comes once for each of its GPUs; what is unknown is refused when the order is sought.
    ranks = None if {*names} <= nodes or {*names} - nodes - machines else ranks_named(",".join(words), network)
    return names if ranks is None else [network.nodes[node] for node in ranks]
