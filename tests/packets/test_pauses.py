"""Links that pause each other for ever are found and named; those that only wait are not."""

import numpy as np
import pytest
from one_path import Dcqcn, Window, play

from commsim.core.errors import InputError
from commsim.core.network import HOST, SWITCH, Network
from commsim.core.placement import Placement
from commsim.core.program import Program
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from commsim.packets.links.queues import Fabric


def circle(n: int) -> Network:
    """Switches in a circle, a host at each; routes go round one way."""
    names = [*(f"h{i}" for i in range(n)), *(f"s{i}" for i in range(n))]
    host, switch = np.arange(n), np.arange(n) + n
    after = np.roll(switch, -1)
    src, dst = np.concatenate((host, switch, switch, after)), np.concatenate((switch, host, after, switch))
    metric = np.concatenate((np.ones(3 * n), np.full(n, 100))).astype(np.int32)
    return Network("circle", names, [HOST] * n + [SWITCH] * n, src, dst, 1.25e9, 1e-6, metric=metric)


def go_round(n: int, hops: int, n_bytes: float, **more):
    p = Program(n, n)
    for i in range(n):
        p.copy(i, src=i, dst=(i + hops) % n)
    plan = plan_flows(circle(n), [FlowJob(p.build(), Placement(list(range(n))))])
    return play(plan, n_bytes, **more)


@pytest.mark.parametrize("transport", [Window(1e6), Dcqcn()])
def test_a_cycle_of_pauses_is_reported_and_not_waited_for(transport):
    # every link of the circle carries two messages, and each switch waits for the next: Dcqcn's timers never end
    fabric = Fabric(pause_at=20e3, resume_at=10e3)
    with pytest.raises(InputError, match=r"in a cycle, s\d -> s\d -> s\d -> s\d; pause later, or route"):
        go_round(3, 2, 30e6, transport=transport, fabric=fabric)


@pytest.mark.jit
def test_pauses_that_end_are_no_deadlock():
    # the same load with one hop less: nobody waits for who waits for it
    run = go_round(3, 1, 30e6, transport=Dcqcn(), fabric=Fabric(pause_at=20e3, resume_at=10e3))
    assert run.results[0].time >= 10e6 / 1.25e9
    # and with what the switches need to hold what is under way
    deep = go_round(3, 2, 3e6, transport=Window(100e3), fabric=Fabric(pause_at=1e6, resume_at=5e5))
    assert deep.results[0].time >= 2 * 1e6 / 1.25e9
