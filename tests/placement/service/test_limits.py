"""Lengths and sizes of requests are checked before work."""

import json

import pytest
from place_service import row, running

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.placement.service.limits import MAX_ANSWER, MAX_NAME, MAX_NODES, require_answer
from commsim.placement.service.posted_cluster import read_posted_cluster
from commsim.prediction.inputs import load_network
from topologies import at_most, require_buildable

LONG = "a" * (MAX_NAME + 1)
POD = {"metadata": {"annotations": {"commsim/job": json.dumps({"job": LONG, "gpus": 1})}}}


@pytest.mark.parametrize(
    ("path", "tree"),
    [
        ("/place", {"jobs": [row("a" * 2**22, 1)]}), ("/jobs", {"jobs": [row(LONG, 1)]}), ("/place", {"jobs": [LONG]}),
        ("/jobs", {"jobs": [row("a", 1, placement=[LONG])]}), ("/jobs", {"jobs": [row("a", 1, placed=[LONG])]}),
        ("/place", {"jobs": [row(f"{i}", 1) for i in range(1001)]}), ("/filter", {"Pod": POD, "NodeNames": []}),
        ("/place", {"jobs": [row("a", 1)], "generators": [LONG]}), ("/place", {"jobs": [row("a", 1)], "fail": [LONG]}),
        ("/place", {"jobs": [row("a", 1)], "generators": ["packed"] * 21}), ("/moves", {"jobs": [LONG]}),
        ("/moves", {"generators": [LONG]}), ("/moves", {"fail": [LONG]}), ("/moves", {"jobs": ["a"] * 101}),
        ("/bind", {"podName": LONG, "podNamespace": "a", "podUID": "a", "node": "h0"}),
        ("/bind", {"podName": "a", "podNamespace": "a", "podUID": "a", "node": LONG}),
        ("/cluster", {"topology": {"name": "star", LONG: 1}}), ("/cluster", {"topology": {"spec": "star" * 2000}}),
        ("/cluster", {"topology": {"name": "star"} | {f"k{i}": 1 for i in range(200)}}),
        ("/cluster", {"topology": {"name": "star", "dims": [1] * 5000}}),
        ("/cluster", {"topology": {"spec": "star:n_hosts=2"}, "hosts": {"gpus": 1, "busy": {LONG: 1}}}),
    ],
)  # fmt: skip
def test_what_is_too_long_is_refused_in_a_short_line(path, tree):
    with running() as service:
        status, answer = service.ask("POST", path, tree)
    said = answer["Error"] if path == "/filter" else answer["error"]
    assert status == (200 if path == "/filter" else 400)
    assert len(said) < 600
    assert LONG[:200] not in said


@pytest.mark.parametrize(
    "spec",
    [
        f"star:n_hosts={5 * MAX_NODES}", "fat_tree:k=76", "fully_connected:n_hosts=1500", "dgx-h100@star:machines=5000",
        "rail_optimized:n_hosts=5120", "torus:dims=100x100x100", "dragonfly:p=16,a=32,h=16", "star:machines=200000",
        "leaf_spine:n_leaves=1000,n_spines=1000,hosts_per_leaf=10",
    ],
)  # fmt: skip
def test_a_cluster_that_is_too_large_is_refused_before_it_is_built(spec, monkeypatch):
    built, make = [], Network.__post_init__
    monkeypatch.setattr(Network, "__post_init__", lambda network: (built.append(len(network.nodes)), make(network)))
    with pytest.raises(InputError, match="at most 80000 and 1000000 are built"):
        read_posted_cluster({"topology": {"spec": spec}, "hosts": {"gpus": 1}})
    assert max(built, default=0) <= 4 * MAX_NODES


def test_the_limits_of_a_request_are_those_of_requests_only():
    with (
        at_most(10, 10),
        pytest.raises(InputError, match="star would have 12 nodes and 22 links; at most 10 and 10"),
    ):
        load_network("star:n_hosts=11")
    assert load_network("star:n_hosts=11").n_nodes == 12
    require_buildable("star", 10**6, 10**6)


def test_an_answer_is_not_larger_than_its_limit():
    require_answer({"candidates": ["a" * 1000] * 1000})
    with pytest.raises(InputError, match="the answer is larger than 64 MiB: ask for fewer candidates"):
        require_answer({"candidates": [{"links": ["a" * 1000] * 1000}] * (MAX_ANSWER // 10**6 + 2)})
