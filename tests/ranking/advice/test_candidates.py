import dataclasses

import pytest

from collectives import COLLECTIVES
from collectives.dense.ring import ring_all_reduce
from collectives.servers.parameter_server import parameter_server
from commsim.prediction.inputs import load_network
from commsim.prediction.read import with_costs
from commsim.ranking.advice.advise import Question
from commsim.ranking.advice.candidates import (
    MAX_MEETINGS,
    MAX_TRANSFERS,
    Effort,
    candidates,
    coarser,
    effort_of,
    fitting,
    most_servers,
    spec_of,
)

STAR = "star:n_hosts=12"
QUESTION = Question(8, 4e6, (0.1,), programmable=True, lossy=True)


def listed(question, network=STAR):
    network = load_network(network) if isinstance(network, str) else network
    return candidates(question.on(network), network)


def names(found):
    return {candidate.spec.partition(":")[0] for candidate in found}


def test_every_registered_all_reduce_is_there_or_left_out_with_a_reason():
    registered = {name for name in COLLECTIVES if COLLECTIVES[name].metadata["operation"] == "all_reduce"}
    found, left_out = listed(QUESTION)
    # of GPUs, which a star's hosts have none of; and the ring, with other sums
    libraries = {"nccl_all_reduce", "rccl_all_reduce", "gloo_ring_all_reduce"}
    others = libraries | {"nvls"}  # of switches inside machines
    assert (names(found), left_out.keys()) == (registered - others, others)
    found, left_out = listed(dataclasses.replace(QUESTION, densities=(), lossy=False, programmable=False))
    assert names(found) | set(left_out) == registered
    assert all(left_out.values())
    sparse = {name for name in registered if COLLECTIVES[name].metadata["sparse"] is not None}
    switched = {name for name in registered if COLLECTIVES[name].metadata["systems"]}
    assert set(left_out) == sparse | switched | libraries


def test_switches_inside_machines_are_tried_only_where_some_add():
    assert "inside machines" in listed(QUESTION)[1]["nvls"]
    machines = (load_network(f"{name}@star:machines=2") for name in ("dgx-h100", "dgx-a100"))
    assert ["nvls" in names(candidates(QUESTION, one)[0]) for one in machines] == [True, False]


def test_a_way_says_what_kind_it_is_and_whether_it_is_exact():
    found, _ = listed(QUESTION)
    kind = {candidate.spec.partition(":")[0]: (candidate.way, candidate.exact) for candidate in found}
    assert kind["ring_all_reduce"] == ("dense", True)
    assert kind["byteps"] == kind["parameter_server"] == ("servers", True)
    assert kind["omnireduce"] == kind["zen"] == ("sparse", True)
    assert kind["ok_topk"] == ("lossy", False)
    assert kind["sharp"] == ("in-network", True)  # it adds floats,
    assert kind["switchml"] == kind["atp"] == ("in-network", False)  # and these integers


def test_servers_are_tried_beside_among_and_without():
    found, _ = listed(QUESTION)
    labels = {candidate.label for candidate in found}
    assert {"parameter_server:n_servers=4", "parameter_server:colocated=true"} <= labels
    assert {"byteps", "byteps:n_servers=4"} <= labels
    assert {"omnireduce:n_aggregators=4", "omnireduce:colocated=true"} <= labels
    none, left_out = listed(dataclasses.replace(QUESTION, n_servers=0))
    assert "byteps" in {candidate.label for candidate in none}
    assert left_out["parameter_server:n_servers=1"] == "needs a host without a worker"


def test_several_densities_make_several_candidates_of_what_is_sparse():
    found, _ = listed(dataclasses.replace(QUESTION, densities=(0.1, 0.01)))
    labels = [candidate.label for candidate in found if candidate.spec.startswith(("zen", "ring"))]
    assert labels == ["ring_all_reduce", "zen:density=0.1", "zen:density=0.01"]


def test_byteps_takes_no_more_servers_than_there_are_machines():
    network = load_network("dgx-h100@star:machines=2")
    question = Question(16, 1e6).on(network)
    assert question.n_servers == 4  # memories
    assert most_servers(COLLECTIVES["byteps"], question, network) == 2
    assert most_servers(COLLECTIVES["parameter_server"], question, network) == 4


def test_fewer_partitions_are_tried_only_where_messages_cost_something_and_no_plan_chooses_them():
    network, entry = load_network(STAR), COLLECTIVES["parameter_server"]
    own = {"n_servers": 4}
    costly = with_costs(network, overhead=1e-6)
    assert coarser(entry, own, network) == coarser(entry, own, costly) == [own]
    few = own | {"n_partitions": 16}
    assert [each["n_partitions"] for each in coarser(entry, few, costly)] == [16, 8, 1]
    beside = {"colocated": True}
    assert [each.get("n_partitions") for each in coarser(entry, beside, costly)] == [None, 8, 1]
    assert coarser(COLLECTIVES["ring_all_reduce"], {}, costly) == [{}]
    found, _ = listed(QUESTION, costly)
    groups = [candidate.group for candidate in found if candidate.spec.startswith("parameter_server:n_servers=4")]
    assert groups == [("parameter_server:n_servers=4", "")]


@pytest.mark.slow
@pytest.mark.parametrize("n", [8, 64, 256])
def test_what_is_tried_is_small_enough_however_many_workers_there_are(n):
    network = load_network(f"star:n_hosts={2 * n}")
    question = Question(n, 4e6, (0.1,)).on(network)
    for name in ("byteps", "parameter_server", "omnireduce", "ring_all_reduce", "zen"):
        entry = COLLECTIVES[name]
        own = fitting(entry, {}, question, network)
        if own is not None:
            assert effort_of(entry.build(n, **own), entry.metadata["sparse"] is not None).fits()
    found, left_out = candidates(question, network)
    assert {"ring_all_reduce", "byteps", "parameter_server", "omnireduce"} <= names(found)
    assert all("too large to be simulated in seconds" in left_out[name] for name in {"zen"} - names(found))
    reduced = [candidate.spec for candidate in found if candidate.reduced]
    assert bool(reduced) == (n > 8)
    assert all("n_partitions=" in spec or "n_servers=" in spec for spec in reduced)


@pytest.mark.nojit
def test_parameters_are_written_as_the_command_line_reads_them():
    assert spec_of("ring_all_reduce", {}) == "ring_all_reduce"
    assert spec_of("a", {"n_servers": 2, "colocated": True}, "seed=1") == "a:n_servers=2,colocated=true,seed=1"


@pytest.mark.nojit
def test_what_is_counted_is_that_of_the_schedule():
    effort = effort_of(parameter_server(4, n_servers=2, n_partitions=3), uneven=False)
    assert effort == Effort(transfers=2 * 4 * 2 * 3, wires=2 * 4 * 2, addresses=6 * 6, uneven=False)
    assert effort_of(ring_all_reduce(5), uneven=True) == Effort(40, 5, 25, True)


@pytest.mark.nojit
def test_partitions_multiply_transfers_and_addresses_but_not_wires():
    one = Effort(transfers=1000, wires=100, addresses=10, uneven=False)
    most = int(MAX_TRANSFERS / 1000)
    assert one.fits(most - 1)
    assert not one.fits(most + 1)
    assert not Effort(1, 2**20, 1, False).fits()
    assert not Effort(1, 1, 2**20, False).fits()


@pytest.mark.nojit
def test_uneven_messages_are_counted_by_those_that_they_meet():
    n = 2 * int(MAX_MEETINGS**0.5)
    assert Effort(n, n, 1, uneven=False).fits()
    assert not Effort(n, n, 1, uneven=True).fits()
