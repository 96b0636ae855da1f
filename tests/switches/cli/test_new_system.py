"""A system that keeps the slot rule is one function in one file, and every verb knows it."""

import pytest

from collectives import COLLECTIVES
from commsim.packets.aggregated.systems import register_systems
from commsim.prediction.collective_names import check_collective
from switch_model.system import System
from switch_model.systems import SYSTEMS, system

STAR = "star:n_hosts=8,bandwidth=100Gbps,latency=1us"


@pytest.fixture
def made_up(forgets):
    """Stand for the one file that a new system is, and that the registry of systems imports."""
    forgets(COLLECTIVES, SYSTEMS)

    @system
    def made_up(elements_per_packet: int = 248, pool_size: int = 256) -> System:
        """Messages of RDMA through a switch beside the network's own, with a window and without quantisation."""
        return System("made_up", elements_per_packet, header=82, pool_size=pool_size, window=pool_size)

    register_systems()


def test_a_new_system_is_known_to_every_verb(made_up, commsim):
    flow, packet = (
        commsim.results(
            "run", "--overhead", "0us", "--collective", "made_up", "--topology", STAR, "-b", "1M", "-e", "1M", *engine
        )["results"][0]
        for engine in ((), ("--engine", "packet"))
    )
    (simulated,) = commsim.results("switch", "simulate", "--system", "made_up", "--topology", STAR, "--size", "1MiB")[
        "results"
    ]
    assert packet["time_s"] == simulated["time_s"] == pytest.approx(flow["time_s"], rel=0.01)
    advice = commsim.results("advise", "--topology", STAR, "--workers", "8", "--size", "1MiB", "--programmable")[
        "results"
    ]
    assert "made_up" in {row["collective"] for row in advice}
    assert commsim.results("switch", "budget", "--system", "made_up")["results"][0]["system"] == "made_up"
    check_collective("made_up:pool_size=64")  # as a sweep does before it begins
