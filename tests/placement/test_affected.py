"""Running jobs on failed links are named with what they lose, and one that is cut off with its hosts."""

import dataclasses

import pytest

from commsim.core.errors import InputError
from commsim.placement.affected import affected
from commsim.placement.cluster import Cluster, on_network
from commsim.placement.link_classes import Settings
from commsim.scenario.faults import with_faults
from commsim.workload.sharing.periodic import GBPS, PeriodicJob, Phase
from topologies.leaf_spine import leaf_spine

NETWORK = leaf_spine(2, 2, 4, bandwidth=50 * GBPS)
CLUSTER = Cluster(NETWORK, (NETWORK.kind == 0).astype(int))


def job(name: str, *placement: str) -> PeriodicJob:
    return PeriodicJob(name, len(placement), 0.1, (Phase(0.02, 0.08, 50 * GBPS),), placement, start=0.0)


FAR, NEAR = job("far", "h0", "h4"), job("near", "h1", "h2")


def without(*faults: str, scale: tuple[str, ...] = ()) -> Cluster:
    return on_network(CLUSTER, with_faults(NETWORK, faults, scale, 0)[0])[0]


def test_the_job_over_a_slower_link_is_named_with_its_slowdown() -> None:
    (said,) = affected(CLUSTER, without(scale=("link:leaf0:spine*=0.5",)), (FAR, NEAR), Settings())
    assert "far (1.0000x before, 1.8000x after)" in said
    assert "near" not in said


def test_nothing_is_said_where_no_placed_job_sends_over_what_failed() -> None:
    waiting = dataclasses.replace(FAR, placement=None)
    assert affected(CLUSTER, without("link:leaf0:spine0"), (NEAR, waiting), Settings()) == []
    assert affected(CLUSTER, without("link:leaf0:spine0"), (waiting,), Settings()) == []


def test_a_job_that_is_cut_off_is_named_with_its_hosts() -> None:
    """The error said only that there is no path from h4 to h0."""
    with pytest.raises(InputError, match="job far on h0 h4 is cut off: without its placement it is moved"):
        affected(CLUSTER, without("switch:leaf0"), (FAR, NEAR), Settings())
