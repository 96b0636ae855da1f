"""The packet engine without loss against the slow oracle, on random networks with random jobs: equal picoseconds."""

import dataclasses

import numpy as np
from flow_cases import Case, cases
from hypothesis import given
from hypothesis import strategies as st
from slow_packets import Simulation

from commsim.core.cost import Framing
from commsim.engine.flow_plan import plan_flows
from commsim.engine.packet.messages import run_messages
from commsim.engine.packet.packet_state import PS
from commsim.engine.packet.transport import Window


@given(
    case=cases(plain=True, routings=("ecmp", "shortest")),
    payload=st.sampled_from([300, 1000]),
    header=st.sampled_from([0, 60]),
    window=st.integers(1, 6),
    ack_every=st.integers(1, 3),
    ack_size=st.sampled_from([0, 40, 86]),
)
def test_every_transfer_starts_and_ends_when_the_oracle_says(
    case: Case, payload: int, header: int, window: int, ack_every: int, ack_size: int
) -> None:
    network = dataclasses.replace(
        case.network, bandwidth=case.network.bandwidth * 1e9, latency=case.network.latency * 1e-6,
        overhead=case.network.overhead * 1e-6, recv_overhead=0.0, gamma=0.0,
    )  # fmt: skip
    sizes, starts = [size * 3000 for size in case.sizes], [start * 1e-6 for start in case.starts]
    plan = plan_flows(network, case.jobs, routing=case.routing, seed=case.seed)
    transport = Window(float(window * payload), ack_size, ack_every)
    run = run_messages(plan, sizes, transport=transport, framing=Framing(payload, header), starts=starts)
    oracle = Simulation(network, max(window, ack_every), ack_every, ack_size, payload, header)
    oracle.add(case.jobs, sizes, starts, routing=case.routing, seed=case.seed)
    message = run.tables.flows.message
    ours = np.stack([message[field] for field in ("start", "sent", "done")], axis=1)
    assert ours.tolist() == [list(times) for times in oracle.play()]
    assert run.times.done.tolist() == (message["done"] / PS).tolist()
