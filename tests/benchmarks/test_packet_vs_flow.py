"""The gap between the two engines, and what it is put down to."""

from benchmarks.accuracy.packet_vs_flow import COLUMNS, LINKS, bandwidth_delay, measure, row
from collectives import COLLECTIVES
from commsim.core.placement import place
from commsim.engine.flow import simulate_flows
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import FlowPlan, plan_flows
from commsim.packets.links.queues import ROCE
from commsim.packets.transports.spraying import over_path, usual_path
from commsim.prediction.inputs import load_network


def planned(collective: str, spec: str, n: int) -> tuple[FlowPlan, float, float]:
    """Plan, size for messages of 100 bandwidth-delay products, and the flow engine's time."""
    network = load_network(f"{spec},{LINKS}")
    schedule = COLLECTIVES[collective].build(n)
    plan = plan_flows(network, [FlowJob(schedule, place(network, n))])
    size = 100 * bandwidth_delay(network, plan) * n
    return plan, size, simulate_flows(plan, size, framing=ROCE)[0].time


def test_an_ideal_window_loses_what_acknowledgements_take_and_little_else() -> None:
    found = measure(
        ("star", "ring_all_reduce", "window", 100), *planned("ring_all_reduce", "star:n_hosts=4", 4), over_path()
    )
    share = 86 / 4178  # on every link data go one way and acknowledgements of as many packets the other way
    assert abs(found.gap - share) < 0.002
    assert abs(found.without_acks) < 0.002
    assert found.cause == "acknowledgements' bytes"
    assert len(row(found)) == len(COLUMNS)


def test_dcqcn_under_an_oversubscribed_spine_loses_by_its_cuts() -> None:
    spec = "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=2,oversubscription=2"
    plan, size, flow = planned("direct_all_to_all", spec, 4)
    found = measure(("", "direct_all_to_all", "dcqcn", 100), plan, size, flow, usual_path("dcqcn", plan.network))
    assert found.gap > 0.1
    assert found.marks > 0
    assert abs(found.without_marks) < 0.01
    assert found.cause == "rates cut by marks"
