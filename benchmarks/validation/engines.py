"""Engines against each other on the same plans: the faster one, which leaves something out, against the other."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.accuracy import packet_vs_flow
from benchmarks.house.table_proofs import of_chunks
from collectives import COLLECTIVES
from commsim.core.errors import InputError
from commsim.packets.aggregated.aggregation_jobs import aggregation_job
from commsim.packets.aggregated.tree_times import simulate_recurrence
from commsim.packets.run_packets import simulate_aggregation
from commsim.prediction.build import prepare
from commsim.prediction.inputs import load_network
from commsim.prediction.read import with_costs
from switch_model.systems import SYSTEMS
from topologies.star import star

from .row import Row

MIB = 2**20
QUICK_RANKS, RANKS = (5,), (4, 8, 12)
MANY_RANKS = {"double_tree_all_reduce": (32, 64), "multi_ring_all_reduce": (32,), "byteps": (32,)}
RECURRENT = ("switchml_udp", "switchml_rdma", "sharp", "nvls")
NETWORKS = (
    "star:n_hosts=8,bandwidth=100Gbps,latency=1us",
    "leaf_spine:n_leaves=3,n_spines=2,hosts_per_leaf=3,bandwidth=90Gbps,latency=700ns",
    "fat_tree:k=4,bandwidth=10Gbps,latency=300ns",
)
NCCL_OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")
NCCL_MACHINES = ("dgx-h100", "rail_optimized:n_hosts=2,preset=dgx-h100")
NCCL_SIZES = (64 * 1024, MIB, 16 * MIB, 256 * MIB)
MEET = "messages that meet at a port go one after the other here, and share it in the flow engine"


def rows(quick: bool) -> Iterator[Row]:
    """Compare; the quick subset has the star only."""
    yield from flow_against_packets(quick)
    yield from alpha_beta_against_flow(QUICK_RANKS if quick else RANKS)
    yield from recurrence_against_events(NETWORKS[:1] if quick else NETWORKS)
    yield from nccl_against_its_closed_form(NCCL_SIZES[:1] if quick else NCCL_SIZES)


def flow_against_packets(quick: bool) -> Iterator[Row]:
    """Flow engine against three transports; the reasons are measured, see benchmarks.accuracy.packet_vs_flow."""
    star_only = {"star": packet_vs_flow.NETWORKS["star"]}
    found = packet_vs_flow.gaps(star_only, packet_vs_flow.CASES[:1], (100,)) if quick else packet_vs_flow.gaps()
    for gap in found:
        yield Row(
            id=f"engines/packets/{gap.network}/{gap.collective}/{gap.products}/{gap.transport}",
            kind="engines",
            against="packet engine",
            model=f"{gap.collective} over {gap.transport}",
            engine="flow",
            operation=str(COLLECTIVES[gap.collective].metadata["operation"]),
            reference=gap.packet_s,
            ours=gap.flow_s,
            unit="s",
            source=f"the packet engine, transport {gap.transport}, messages of {gap.products} bandwidth-delay products",
            ranks=packet_vs_flow.N_RANKS,
            network=gap.network,
            size=gap.size,
            note=f"most of it: {gap.cause}",
        )


def alpha_beta_against_flow(ranks: tuple[int, ...]) -> Iterator[Row]:
    """Critical path against the flow engine on a star, where only ports are shared."""
    for name in COLLECTIVES:
        for n_ranks in (*ranks, *(MANY_RANKS.get(name, ()) if ranks == RANKS else ())):
            network = with_costs(star(n_ranks + 1), overhead=1.5e-6, gamma=2e-11)
            ready = prepare(of_chunks(name), network, n_ranks=n_ranks)
            flow = ready.predict(MIB).time
            yield Row(
                id=f"engines/alpha-beta/{name}/{n_ranks}",
                kind="engines",
                against="flow engine",
                model=name,
                engine="alpha-beta",
                operation=ready.schedule.operation,
                reference=flow,
                ours=ready.predict(MIB, engine="alpha-beta").time,
                unit="s",
                source="the flow engine on a star",
                ranks=n_ranks,
                network="star",
                size=float(MIB),
                note=MEET,
            )


def recurrence_against_events(networks: tuple[str, ...]) -> Iterator[Row]:
    """Max-plus recurrence against the packet engine's events."""
    for where in networks:
        network = load_network(where)
        for name in RECURRENT:
            job = aggregation_job(SYSTEMS[name].build(), network, network.endpoints.tolist(), MIB // 4)
            events = simulate_aggregation(network, [job], values=False).results[0].time
            try:
                ours = simulate_recurrence(network, job).time
            except InputError:  # streams that share a link: no recurrence there
                continue
            yield Row(
                id=f"engines/recurrence/{network.name}/{name}",
                kind="engines",
                against="event by event",
                model=f"recurrence of {name}",
                engine="recurrence",
                operation="all_reduce",
                reference=events,
                ours=ours,
                unit="s",
                source="the packet engine, event by event",
                ranks=len(network.endpoints),
                network=where.partition(":")[0],
                size=float(MIB),
            )


def nccl_against_its_closed_form(sizes: tuple[int, ...]) -> Iterator[Row]:
    """NCCL's messages event by event against the closed form, which is taken where no link can be in the way."""
    for where in NCCL_MACHINES:
        for operation in NCCL_OPERATIONS:
            ready = prepare(f"nccl_{operation}", where)
            for size in sizes:
                launched = ready.at(size)
                yield Row(
                    id=f"engines/nccl/{operation}/{ready.schedule.n_ranks}/{size}",
                    kind="engines",
                    against="closed form of NCCL",
                    model=f"nccl_{operation}",
                    engine="flow",
                    operation=operation,
                    reference=launched.predict(size, engine="closed-form").time,
                    ours=launched.predict(size, method="events").time,
                    unit="s",
                    source="the costs of NCCL's primitives, added up",
                    ranks=ready.schedule.n_ranks,
                    network=where.partition(":")[0],
                    size=float(size),
                )
