"""Refusals say how many GPUs a host has and why they are not free."""

from place_service import row, running, small_cluster

from commsim.placement.cluster import Cluster


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
