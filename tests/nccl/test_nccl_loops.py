import dataclasses

import pytest

from commsim.core.data_order.dependencies import connections
from commsim.engine.flow_paths import FlowPaths
from commsim.engine.ways.closed_form_proof import simulate_loops
from commsim.engine.ways.closed_form_way import ClosedFormPaths
from commsim.engine.ways.proof_cache import PROOFS, TIMES
from commsim.nccl.plans import nccl_launch
from commsim.prediction.build import prepare
from commsim.prediction.inputs import load_network

FABRIC = "dgx-h100@leaf_spine:machines={},n_leaves=2,n_spines=4,uplinks_per_spine=1"
# In units of what makes some loops of a ring, or of a tree or a switch.
SIZES, UNITS = (16, 24, 40.000007, 32, 16), {True: 2**27, False: 2**24}
CALLS = [
    (2, "nccl_all_reduce:algorithm=nvls_tree"), (3, "nccl_all_reduce:algorithm=nvls_tree"),
    (3, "nccl_all_reduce:algorithm=ring,channels=2"), (6, "nccl_all_reduce:algorithm=tree"),
    (2, "nccl_all_gather:channels=2"), (3, "nccl_reduce_scatter:channels=2"), (2, "nccl_broadcast"), (2, "nccl_reduce"),
]  # fmt: skip


def unit_of(collective):
    return UNITS["ring" in collective or "gather" in collective or "scatter" in collective]


class Slow(ClosedFormPaths):
    """A job of many loops, of which each simulation is made anew and shares nothing."""

    def _looped(self, network, size, starts, framing):
        loops = self.known.loops
        jobs = {n: loops.build(n) for n in loops.n_loops}

        def time(where, n_loops, part):
            paths = FlowPaths(where, jobs[n_loops], self.routing, self.seed)
            return paths.simulate(part, starts=starts, framing=framing).time

        found = simulate_loops(network, loops, (self.job, self.proof), size, starts, framing, time)
        return dataclasses.replace(found, method="loops")


def few_are_many(monkeypatch):
    monkeypatch.setattr(nccl_launch, "MAX_MESSAGES", 1000)
    monkeypatch.setattr(nccl_launch, "FEW_LOOPS", (2, 4))


@pytest.fixture(autouse=True)
def nothing_is_known(monkeypatch):
    few_are_many(monkeypatch)
    TIMES.clear()
    PROOFS.clear()


@pytest.mark.sample(4)
@pytest.mark.parametrize(("machines", "collective"), CALLS)
def test_other_sizes_and_draws_have_the_times_of_simulations_that_share_nothing(machines, collective):
    plan = prepare(collective, load_network(FABRIC.format(machines)), routing="ecmp")
    for number in SIZES:
        size = int(number * unit_of(collective))
        at = plan.at(size)
        for seed in (0, 1000):
            paths = at.hashed_by(seed).paths
            framing = paths.known.framing
            found = paths.simulate(size, framing=framing, method="auto" if paths.proof.full >= 0 else "loops")
            slow = Slow(paths.network, paths.job, paths.routing, paths.seed, known=paths.known)
            wanted = slow.with_rest(slow._looped(paths.network, size, 0.0, framing), size)
            assert found.method == "loops"
            assert found.time == wanted.time
            assert (found.link_bytes == wanted.link_bytes).all()


@pytest.mark.parametrize(("machines", "collective"), CALLS)
def test_loops_have_the_connections_of_the_whole_call(machines, collective):
    plan = prepare(collective, load_network(FABRIC.format(machines)), routing="ecmp").at(16 * unit_of(collective))
    carriers = plan.paths.proof.carriers
    whole = set(zip(map(tuple, carriers.ends.tolist()), carriers.channel.tolist(), strict=True))
    for n_loops in plan.paths.known.loops.n_loops:
        schedule = plan.paths.known.loops.build(n_loops).schedule
        transfers = schedule.expand()
        lead = transfers[connections(schedule, transfers)[1]]
        ends = zip(lead["src"].tolist(), lead["dst"].tolist(), strict=True)
        assert set(zip(ends, lead["channel"].tolist(), strict=True)) <= whole


def test_a_size_with_the_same_loops_and_a_draw_with_the_same_routes_are_not_simulated_again(monkeypatch):
    plan = prepare("nccl_all_reduce:algorithm=nvls_tree", load_network(FABRIC.format(4)), routing="ecmp")
    plan.at(2**29).paths.simulate(2**29, method="loops")
    assert len(TIMES) == 4  # of few loops and of more, on the network and on the reference
    monkeypatch.setattr(FlowPaths, "simulate", lambda *_, **__: pytest.fail("simulated again"))
    for size in (2**28, 3 * 2**28, 2**30):  # whole numbers of loops
        plan.at(size).paths.simulate(size, method="loops")
    monkeypatch.undo()
    few_are_many(monkeypatch)
    plan.at(2**29).hashed_by(1000).paths.simulate(2**29, method="loops")
    assert len(TIMES) == 6  # the reference has no link that a hash changes


def test_jobs_of_as_many_transfers_do_not_share_what_their_schedules_decide():
    """A key is what decides a schedule, not how large it is; a draw of routes takes over the jobs themselves."""
    plan = prepare("nccl_all_reduce:algorithm=ring,channels=2", load_network(FABRIC.format(3)), routing="ecmp")
    paths = plan.at(16 * UNITS[True]).paths
    few = paths._job_of(2)
    mirrored = dataclasses.replace(few, schedule=dataclasses.replace(few.schedule, blocks=few.schedule.blocks[::-1]))
    ours = paths._on(paths.network, few, paths.known.loops.key(2)).shared
    theirs = paths._on(paths.network, mirrored, "mirrored").shared
    assert mirrored.schedule.n_transfers == few.schedule.n_transfers
    assert (ours.job, theirs.job) == (few, mirrored)
    numbered = ours.numbered
    again = paths.hashed_by(1000)
    assert again._job_of(2) is few
    assert again._on(paths.network, few, paths.known.loops.key(2)).shared.numbered is numbered
