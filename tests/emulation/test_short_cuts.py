"""Short cuts of the emulation give what a simulation of everything gives, to the last bit: times, data, link bytes."""

import functools

import pytest

from commsim.emulation import emulate as emulation
from commsim.emulation.traffic.network_traffic import MAX_KEPT, EmulatedTraffic

from .drawn_programs import draw, overlapping, run
from .slow_emulation import JointTraffic, SlowCoordinator, SlowTraffic

NETWORKS = (
    "star:n_hosts=8",
    "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4,bandwidth=25Gbps,uplink_bandwidth=12.5Gbps",
)


def emulated(program, n_ranks, network, **options):
    """Return all that an emulation of a drawn program says."""
    saw = {}
    found = emulation.emulate(lambda: program(saw), network, n_ranks, records=True, **options)
    rows = [(row.site, row.operation, row.n_bytes, row.n_calls, row.ticks, row.exposed) for row in found.rows]
    times = [found.ends.tolist(), found.exposed.tolist(), found.link_bytes.tolist()]
    return times, sorted(rows), [repr(record) for record in found.records], sorted(saw.items())


def without_short_cuts(monkeypatch):
    """Emulate with the oracle from now on."""
    monkeypatch.setattr(emulation, "EmulatedTraffic", SlowTraffic)
    monkeypatch.setattr(emulation, "Coordinator", SlowCoordinator)


@pytest.mark.parametrize("seed", [pytest.param(k, marks=() if k in (0, 3, 4) else pytest.mark.deep) for k in range(80)])
def test_drawn_programs_are_as_without_short_cuts(seed, monkeypatch):
    n_ranks = 2 + seed % 7
    options = {"leave": "own" if seed % 5 == 4 else "together", **({"overhead": "0.3us"} if seed % 3 == 0 else {})}
    given = functools.partial(run, draw(seed, n_ranks)), n_ranks, NETWORKS[seed // 2 % 2]
    quick = emulated(*given, **options)
    without_short_cuts(monkeypatch)
    assert emulated(*given, **options) == quick


def test_the_same_messages_at_other_times_are_told_apart(monkeypatch):
    quick = emulated(overlapping, 3, NETWORKS[0])
    without_short_cuts(monkeypatch)
    assert emulated(overlapping, 3, NETWORKS[0]) == quick


@pytest.mark.parametrize("seed", [pytest.param(k, marks=() if k in (0, 5) else pytest.mark.deep) for k in range(6)])
def test_messages_that_share_nothing_change_nothing(seed, monkeypatch):
    """Parts of the traffic are simulated alone: the times are those of all traffic together, but for rounding."""
    n_ranks = 4 + seed % 5
    options = {"overhead": "0.3us"} if seed % 3 == 0 else {}
    given = functools.partial(run, draw(seed + 100, n_ranks)), n_ranks, NETWORKS[seed % 2]
    (ends, exposed, carried), rows, _, _ = emulated(*given, **options)
    monkeypatch.setattr(emulation, "EmulatedTraffic", JointTraffic)
    (joint_ends, joint_exposed, joint_carried), joint_rows, _, _ = emulated(*given, **options)
    assert ends == pytest.approx(joint_ends, rel=1e-12)
    assert exposed == pytest.approx(joint_exposed, rel=1e-12)
    assert carried == joint_carried
    assert [row[:4] for row in rows] == [row[:4] for row in joint_rows]


@pytest.mark.parametrize("network", [NETWORKS[0], "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4"])
def test_a_network_that_is_never_idle_is_simulated_seldom(network):
    """Two pairs of ranks exchange messages of unlike sizes: each message was a simulation of all before it."""

    def program():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        pair, is_second = divmod(comm.rank, 2)
        data, other = bytearray(1000 + 1237 * pair), comm.rank ^ 1
        for _ in range(60):
            if is_second:
                comm.Recv(data, other)
                comm.Send(data, other)
            else:
                comm.Send(data, other)
                comm.Recv(data, other)

    found = emulation.emulate(program, network, 4)
    assert found.n_simulated <= 4
    alone = [emulation.emulate(program, network, 2).ends[0]]
    assert found.ends[0] == pytest.approx(alone[0], rel=1e-12)


def test_what_was_kept_is_forgotten_in_time(monkeypatch):
    """A program that never does the same again keeps a bounded number of simulations."""
    monkeypatch.setattr("commsim.emulation.traffic.network_traffic.MAX_KEPT", 8)
    made = []
    begun = EmulatedTraffic.__post_init__

    def program():
        from mpi4py import MPI

        for k in range(40):
            if MPI.COMM_WORLD.rank == 0:
                MPI.COMM_WORLD.Send(bytes(k), 1)
            else:
                MPI.COMM_WORLD.Recv(bytearray(k), 0)

    monkeypatch.setattr(EmulatedTraffic, "__post_init__", lambda self: (made.append(self), begun(self))[1])
    found = emulation.emulate(program, NETWORKS[0], 2)
    assert found.n_simulated == 40
    assert len(made[0]._root.then) <= 8 < MAX_KEPT
