"""Refusals say how many GPUs a host has and why they are not free."""

from place_service import row, running, small_cluster

from commsim.placement.cluster import Cluster
from commsim.prediction.network_builder import NetworkBuilder


def test_gpus_that_are_busy_are_not_those_that_the_host_lacks():
    network = small_cluster().network
    gpus = (network.kind == 0).astype(int) * 4
    busy = [2 if name == "h0" else 0 for name in network.nodes]
    with running(Cluster(network, gpus, busy)) as service:
        assert service.ask("POST", "/jobs", {"jobs": [row("x", 4, placement=["h0x4"])]}) == (
            409,
            {"error": "job x takes 4 GPUs of h0, which has 4, 2 of them busy, 0 of them taken by other jobs"},
        )
        assert service.ask("POST", "/jobs", {"jobs": [row("y", 2, placement=["h0x2"])]})[0] == 200
        assert service.ask("POST", "/jobs", {"jobs": [row("z", 1, placement=["h0"])]})[1]["error"].endswith(
            "h0, which has 4, 2 of them busy, 2 of them taken by other jobs"
        )
        assert service.ask("POST", "/jobs", {"jobs": [row("z", 5, placement=["h1x5"])]})[1]["error"].endswith(
            "h1, which has 4, 0 of them taken by other jobs"
        )


def test_placing_says_how_many_candidates_to_ask_for():
    with running() as service:
        asked = {"jobs": [row("a", 12, up=180.0), row("b", 12, up=180.0)], "candidates": 2}
        status, answer = service.ask("POST", "/place", asked)
        assert status == 200
        assert min(one["slowdown"] for one in answer["candidates"]) > 1
        assert answer["notes"][-1].startswith("8 placements were tried, the best is slower than jobs alone")


def test_gpus_that_others_have_are_a_conflict_and_those_that_nobody_has_a_wrong_request():
    """A search that lacked room was a 400, as a malformed body is: the caller could not tell when to ask again."""
    with running(small_cluster()) as service:
        total = service.ask("GET", "/cluster")[1]["gpus"]
        asked = {"jobs": [row("b", 2)], "candidates": 1, "reserve": True}
        old = row("a", total - 1, placement=[f"h{i // 2}" for i in range(total - 1)])
        assert service.ask("POST", "/jobs", {"jobs": [old]})[0] == 200
        for more in ({}, {"check": True}):  # beside what is known, and as `commsim place`
            status, answer = service.ask("POST", "/place", asked | more)
            assert (status, answer["error"]) == (409, "the jobs that are not placed (b) need 2 GPUs, and 1 are free")
            too_many = {"jobs": [row("b", total + 1)], "candidates": 1} | more
            assert service.ask("POST", "/place", too_many)[0] == 400
        taken = {"jobs": [row("b", 1, placement=["h0"])]}
        assert service.ask("POST", "/place", taken)[0] == 409
        assert service.ask("POST", "/place", {"jobs": [row("b", 99, placement=["h0x99"])]})[0] == 400


def test_fabrics_that_are_full_are_a_conflict():
    """Two racks that no path joins: a job of three hosts is never possible, one of two is after others have ended."""
    racks = NetworkBuilder().switch("l0", "l1")
    for i in range(4):
        racks = racks.hosts(f"h{i}").cable(f"h{i}", f"l{i // 2}", bandwidth="100Gbps", latency="500ns")
    network = racks.build()
    with running(Cluster(network, (network.kind == 0).astype(int) * 4)) as service:
        placed = [row("a", 4, placement=["h0x4"]), row("b", 4, placement=["h2x4"])]
        assert service.ask("POST", "/jobs", {"jobs": placed})[0] == 200
        for n_gpus, wanted in ((4, 200), (8, 409), (12, 400)):
            status, answer = service.ask("POST", "/place", {"jobs": [row("c", n_gpus)], "candidates": 1})
            assert status == wanted, answer
