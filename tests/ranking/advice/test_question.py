import numpy as np
import pytest

from collectives import COLLECTIVES
from commsim.core.errors import InputError
from commsim.prediction.build import prepare
from commsim.prediction.inputs import load_network
from commsim.ranking.advice.question import BLOCK, Question, size_of_gradients

STAR = "star:n_hosts=12"
FORMS = {name: COLLECTIVES[name].metadata["sparse"] for name in COLLECTIVES if COLLECTIVES[name].metadata["sparse"]}


def asked(**changes):
    return Question(**{"n_workers": 4, "size": 4e6, "densities": (0.05,)} | changes)


@pytest.mark.jit
@pytest.mark.parametrize("name", sorted(FORMS))
@pytest.mark.parametrize("block", [None, 1, 64])
def test_every_sparse_collective_is_given_the_same_elements(name, block):
    question = asked(block=block).on(load_network(STAR))
    (data,) = question.data_of(FORMS[name]).values()
    bound = prepare(f"{name}:{data}", STAR, n_ranks=4).data
    found, drawn = bound.occupancy(question.size), question.draw(0.05)
    for rank in range(4):
        mine = np.repeat(found.bitmap_of(rank), found.block)[: found.n_elements]
        theirs = np.repeat(drawn.bitmap_of(rank), drawn.block)[: drawn.n_elements]
        assert (mine | ~theirs).all()  # none is missing, and more are sent only to fill blocks
        if found.block <= drawn.block:
            assert np.array_equal(mine, theirs)
    if FORMS[name].block == BLOCK:
        assert found.block == BLOCK


def test_as_many_servers_as_workers_may_help_unless_there_are_fewer_places():
    network = load_network(STAR)
    assert [asked(n_workers=n).on(network).n_servers for n in (1, 4, 10, 12)] == [1, 4, 2, 0]
    assert asked(n_servers=3).on(network).n_servers == 3


def test_gradients_are_named_in_the_data_and_lossy_ways_get_a_density_too():
    question = asked(gradients="g.npy", densities=(0.01,), lossy=True)
    assert question.data_of(FORMS["agsparse"]) == {"": "gradients=g.npy"}
    assert question.data_of(FORMS["gtop_k"]) == {"density=0.01": "density=0.01,gradients=g.npy"}
    assert asked(gradients="g.npy", block=64).data_of(FORMS["omnireduce"]) == {"": "block=64,gradients=g.npy"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_workers": 13}, r"workers must be 1\.\.12 .*got 13"),
        ({"n_workers": 0}, "workers must be 1"),
        ({"n_servers": 9}, r"8 places for servers beside 4 workers: servers must be 0\.\.8, got 9"),
        ({"n_servers": -1}, "got -1"),
        ({"densities": (0.1, 1.5)}, "density must be above 0 and at most 1, got 1.5"),
        ({"densities": (float("nan"),)}, "got nan"),
        ({"densities": (1e-7,)}, "an empty bitmap"),
        ({"densities": (0.3,), "pattern": "disjoint"}, "4 ranks cannot have"),
        ({"pattern": "stripes"}, "pattern must be one of random, overlapping, disjoint, zipf, got 'stripes'"),
        ({"block": 0}, "a block has at least 1 element, got 0"),
        ({"size": 6.0}, "whole elements of 4 bytes, got a size of 6"),
        ({"densities": (), "lossy": True}, "need a density"),
        ({"gradients": "a,b.npy"}, "no comma"),
    ],
)
def test_what_cannot_be_asked_is_refused(changes, message):
    with pytest.raises(InputError, match=message):
        asked(**changes).on(load_network(STAR))


def test_gradients_say_how_large_they_are_and_of_how_many_workers(tmp_path):
    np.save(tmp_path / "g.npy", np.ones((3, 50), np.float16))
    assert size_of_gradients(str(tmp_path / "g.npy"), None) == (100.0, 3)
    with pytest.raises(InputError, match="needs gradients of 4 ranks, got 3"):
        size_of_gradients(str(tmp_path / "g.npy"), 4)
