"""In-network aggregation: steady rates against bounds, the sizing of pools, and losses at first order."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from switch_model.bounds import loss_estimate, slots_for, throughput
from switch_model.systems import SYSTEMS

from .. import switch_rates
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


def losses(chances: tuple[float, ...], n: int = 8, gbps: int = 100, elements: int = 2**20) -> Iterator[Row]:
    """Packet engine, median of some seeds, against the estimate of what losses cost."""
    from commsim.engine.packet.aggregation import simulate_aggregation
    from commsim.run.inputs import load_network
    from commsim.run.packet_job import aggregation_job, with_loss

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
