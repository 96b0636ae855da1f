"""In-network aggregation: steady rates against bounds, the sizing of pools, and losses at first order."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from benchmarks.switch import rates as switch_rates
from commsim.papers.measures import LATENCY
from switch_model.bounds import loss_estimate, slots_for, throughput
from switch_model.systems import SYSTEMS

from . import rate_allocation
from .row import Row

GBPS = 1e9 / 8
LOSSES = (1e-4, 1e-3, 1e-2)
LOSS_SEEDS = 5
FIRST_ORDER = "the estimate leaves out second losses, and that a worker goes on with other slots while one waits"


def rows(quick: bool) -> Iterator[Row]:
    """Compare; the quick subset has one case of each."""
    for case in switch_rates.cases()[:1] if quick else switch_rates.cases():
        found = switch_rates.measure(case)
        name = f"{case.name}/{case.gbps}/{case.n_workers}"
        rates = float(found["bound"] or 0), float(found["simulated"] or 0)
        yield _steady(name, case.system.name, case.n_workers, *rates, "min(B k / L_w, s k / RTT)")
    yield from pools((10,) if quick else (10, 25, 100))
    yield from racks(((8, 8),) if quick else ((8, 8), (16, 15)))
    yield from server_bytes((64,) if quick else (64, 240))
    if not quick:  # SciPy takes a second to import
        yield from shares()
    yield from losses(LOSSES[1:2] if quick else LOSSES)


def pools(speeds: tuple[int, ...], n: int = 8) -> Iterator[Row]:
    """Packet engine with the slots of the rule for pools, and with an eighth of them, against the bound."""
    for gbps in speeds:
        full = SYSTEMS["switchml_udp"].build(elements_per_packet=64)
        trip = switch_rates.round_trip(full, gbps)
        enough = slots_for(full, gbps * GBPS, trip)
        for slots in (enough, max(1, enough // 8)):
            system = SYSTEMS["switchml_udp"].build(elements_per_packet=64, pool_size=slots)
            bound = throughput(system, gbps * GBPS, trip)
            ours = switch_rates.simulated_rate(system, gbps, n)
            yield _steady(f"pool of {slots}/{gbps}", "pool sizing", n, bound, ours, "slots_for, and s k / RTT below it")


def _steady(name: str, model: str, n: int, bound: float, ours: float, formula: str) -> Row:
    return Row(
        id=f"closed_form/rate/{name}",
        kind="closed_form",
        against="bound",
        model=model,
        engine="packet",
        operation="all_reduce",
        reference=bound,
        ours=ours,
        unit="elements/s",
        source=f"{formula} (switch_model.bounds)",
        ranks=n,
        network="star",
    )


def racks(cases: tuple[tuple[int, int], ...], gbps: int = 100, elements: int = 2**20) -> Iterator[Row]:
    """Packet engine on racks below one switch, against the time of one stream of packets through four links."""
    from commsim.packets.aggregated.aggregation_jobs import aggregation_job
    from commsim.packets.aggregated.tree_times import simulate_recurrence
    from topologies.leaf_spine import leaf_spine

    system = SYSTEMS["switchml_udp"].build()
    packet = system.packet_bytes(0) / (gbps * GBPS)
    for n_racks, per_rack in cases:
        network = leaf_spine(n_racks, 1, per_rack, bandwidth=gbps * GBPS, uplink_bandwidth=gbps * GBPS, latency=LATENCY)
        job = aggregation_job(system, network, network.endpoints.tolist(), elements)
        yield Row(
            id=f"closed_form/racks/{n_racks}x{per_rack}",
            kind="closed_form",
            against="closed form",
            model="switchml_udp in racks",
            engine="packet",
            operation="all_reduce",
            reference=(elements / system.elements + 3) * packet + 4 * LATENCY,
            ours=simulate_recurrence(network, job).time,
            unit="s",
            source="(P + 3) t + 4 L of P packets; before 0.2 more than 32 workers were refused",
            ranks=n_racks * per_rack,
            network="leaf-spine",
            size=4.0 * elements,
        )


def server_bytes(workers: tuple[int, ...], elements: int = 2**14) -> Iterator[Row]:
    """Bytes at ATP's server, which has each fragment once when switches add up all workers of several racks."""
    from commsim.packets.aggregated.aggregation_jobs import aggregation_job
    from commsim.packets.run_packets import simulate_aggregation
    from topologies.leaf_spine import leaf_spine

    system, network = SYSTEMS["atp"].build(), leaf_spine(8, 4, 31, bandwidth=100 * GBPS, latency=LATENCY)
    for n in workers:
        job = aggregation_job(system, network, network.endpoints[:n].tolist(), elements)
        yield Row(
            id=f"closed_form/racks/atp/{n}",
            kind="closed_form",
            against="closed form",
            model="atp in racks, bytes at the server",
            engine="packet",
            operation="all_reduce",
            reference=float(-(-elements // system.elements) * system.packet_bytes(0)),
            ours=simulate_aggregation(network, [job]).results[0].counters["server_bytes"],
            unit="B",
            source="a packet for each fragment, whatever the workers; more than 64 were refused before",
            ranks=n,
            network="leaf-spine",
            size=4.0 * elements,
        )


def shares() -> Iterator[Row]:
    """Linear program of rates, for two servers, against the inequalities that remain by symmetry."""
    for between, reference, note in (
        (1.0, 2.0, "7/3 before 0.2, where each worker chose its own shares of the servers"),
        (3.0, 7 / 3, "3 if a switch could add its whole capacity for each server"),
    ):
        yield Row(
            id=f"closed_form/shares/{between:g}",
            kind="closed_form",
            against="closed form",
            model="rate allocation, two servers",
            engine="linear program",
            operation="all_reduce",
            reference=reference,
            ours=rate_allocation.two_servers(between).rate,
            unit="Gb/s",
            source="benchmarks.validation.rate_allocation.two_servers: what two links leave of a + 3 u",
            ranks=rate_allocation.RACKS * rate_allocation.PER_RACK,
            note=note,
        )


def losses(chances: tuple[float, ...], n: int = 8, gbps: int = 100, elements: int = 2**20) -> Iterator[Row]:
    """Packet engine, median of some seeds, against the estimate of what losses cost."""
    from commsim.packets.aggregated.aggregation_jobs import aggregation_job, with_loss
    from commsim.packets.run_packets import simulate_aggregation
    from commsim.prediction.inputs import load_network

    system = SYSTEMS["switchml_udp"].build()
    star = load_network(f"star:n_hosts={n},bandwidth={gbps}Gbps,latency=1us")
    for chance in chances:
        network = with_loss(star, chance, chance)
        job = aggregation_job(system, network, network.endpoints.tolist(), elements)
        runs = [simulate_aggregation(network, [job], values=False, seed=s).results[0].time for s in range(LOSS_SEEDS)]
        estimate = loss_estimate(system, elements, n, gbps * GBPS, switch_rates.round_trip(system, gbps), chance)
        yield Row(
            id=f"closed_form/loss/{chance:g}",
            kind="closed_form",
            against="first-order estimate",
            model="loss and timeouts",
            engine="packet",
            operation="all_reduce",
            reference=estimate.time,
            ours=statistics.median(runs),
            unit="s",
            source="switch_model.bounds.loss_estimate",
            ranks=n,
            network="star",
            size=4.0 * elements,
            note=FIRST_ORDER,
            spread=(max(runs) - min(runs)) / statistics.median(runs),
        )
