import dataclasses

from collectives import COLLECTIVES
from commsim.advice import Question
from commsim.advice.candidates import candidates
from commsim.run.inputs import load_network

STAR = "star:n_hosts=12"
QUESTION = Question(8, 4e6, (0.1,), programmable=True, lossy=True)


def listed(question, network=STAR):
    network = load_network(network) if isinstance(network, str) else network
    return candidates(question.on(network), network)


def names(found):
    return {candidate.spec.partition(":")[0] for candidate in found}


def test_every_registered_all_reduce_is_there_or_left_out_with_a_reason():
    registered = {name for name in COLLECTIVES if COLLECTIVES[name].facts["operation"] == "all_reduce"}
    found, left_out = listed(QUESTION)
    assert (names(found), left_out) == (registered, {})
    found, left_out = listed(dataclasses.replace(QUESTION, densities=(), lossy=False, programmable=False))
    assert names(found) | set(left_out) == registered
    assert all(left_out.values())
    sparse = {name for name in registered if COLLECTIVES[name].facts["sparse"] is not None}
    switched = {name for name in registered if COLLECTIVES[name].facts["helpers"] is not None}
    assert set(left_out) == sparse | switched


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
    assert left_out["parameter_server:n_servers=1"] == "needs a host on which no worker sits"


def test_several_densities_make_several_candidates_of_what_is_sparse():
    found, _ = listed(dataclasses.replace(QUESTION, densities=(0.1, 0.01)))
    labels = [candidate.label for candidate in found if candidate.spec.startswith(("zen", "ring"))]
    assert labels == ["ring_all_reduce", "zen:density=0.1", "zen:density=0.01"]
