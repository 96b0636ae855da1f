import pytest

from collectives import COLLECTIVES
from commsim.advice import Question
from commsim.advice.candidates import candidates
from commsim.advice.effort import effort_of
from commsim.advice.variants import coarser, fitting, most_servers, spec_of
from commsim.inputs import load_network
from commsim.run import with_costs

STAR = "star:n_hosts=12"
QUESTION = Question(8, 4e6, (0.1,), programmable=True, lossy=True)


def listed(question, network=STAR):
    network = load_network(network) if isinstance(network, str) else network
    return candidates(question.on(network), network)


def names(found):
    return {candidate.spec.partition(":")[0] for candidate in found}


def test_byteps_takes_no_more_servers_than_there_are_machines():
    network = load_network("dgx-h100@star:n_hosts=16")
    question = Question(16, 1e6).on(network)
    assert question.n_servers == 4  # memories
    assert most_servers(COLLECTIVES["byteps"], question, network) == 2
    assert most_servers(COLLECTIVES["parameter_server"], question, network) == 4


def test_coarser_partitions_are_tried_only_where_messages_cost_something():
    network, entry = load_network(STAR), COLLECTIVES["parameter_server"]
    own = {"n_servers": 4}
    assert coarser(entry, own, network) == [own]
    costly = with_costs(network, overhead=1e-6)
    assert [each.get("n_partitions") for each in coarser(entry, own, costly)] == [None, 8, 1]
    assert coarser(COLLECTIVES["ring_all_reduce"], {}, costly) == [{}]
    found, _ = listed(QUESTION, costly)
    groups = [candidate.group for candidate in found if candidate.spec.startswith("parameter_server:n_servers=4")]
    assert groups == [("parameter_server:n_servers=4", "")] * 3


@pytest.mark.parametrize("n", [8, 64, 256])
def test_what_is_tried_is_small_enough_however_many_workers_there_are(n):
    network = load_network(f"star:n_hosts={2 * n}")
    question = Question(n, 4e6, (0.1,)).on(network)
    for name in ("byteps", "parameter_server", "omnireduce", "ring_all_reduce", "zen"):
        entry = COLLECTIVES[name]
        own = fitting(entry, {}, question, network)
        if own is not None:
            assert effort_of(entry.build(n, **own), entry.facts["sparse"] is not None).fits()
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
