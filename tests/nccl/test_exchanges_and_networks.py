"""Messages between peers by warps and buffers, and networks whose software is said: sockets, ENA, Slingshot by year."""

import pytest

from collectives.nccl.point_to_point import message, receiving_warps
from commsim.nccl.gpu_costs import costs
from commsim.prediction.build import prepare

RACK = "gb200-nvl72:n_gpus={0},n_nics={0},n_pcie_switches={0}"
ALONE = "pcie_host:n_gpus=1,n_nics=1,n_pcie_switches=0,n_cpus=1,pcie=48GB/s,gpu=hopper,cpu=intel,nic={},net={}"
TWO = f"{ALONE}@star:machines=2"


@pytest.mark.parametrize(("n_peers", "warps"), [(1, 9), (2, 4), (4, 3 * 2), (8, 7), (9, 8), (72, 8)])
def test_a_channel_s_warps_are_shared_among_peers_and_halved(n_peers, warps):
    """Of 20 warps: 9 of 20, 4 of 10, 2 of 5 and 1 of 2 receive; a rank's own share receives nothing from another."""
    assert receiving_warps(n_peers) == warps


@pytest.mark.parametrize("n", [4, 8, 64])
def test_large_messages_on_blackwell_are_held_by_the_warps_that_receive(n):
    warp, ready = costs().of_gpu("blackwell").p2p_warp, prepare("nccl_all_to_all", RACK.format(n))
    small, large = (ready.predict(size).time for size in (2**33, 2**34))
    assert (n - 1) / n * 2**33 / (large - small) == pytest.approx(32 * receiving_warps(n) * warp, rel=0.01)


def test_on_hopper_messages_are_held_by_the_links():
    assert costs().of_gpu("hopper").p2p_warp == float("inf")


def test_two_gpus_exchange_at_the_same_share_of_their_links_as_eight():
    """Two H100 of an operator that nothing is fitted on reach 315 GB/s each way, and eight 328; the links have 371."""
    rates = []
    for n in (2, 8):
        size = 2**34
        seconds = prepare("nccl_all_to_all", f"hgx-h100:n_gpus={n}").predict(size).time
        rates.append(size * (n - 1) / n / seconds)
    assert rates[0] == pytest.approx(rates[1], rel=0.02)


def test_a_buffer_smaller_than_eight_chunks_cuts_messages_and_a_larger_one_does_not():
    usual = message(2**26, 32, 32, network=False, many_nodes=False)
    assert usual.chunk == 2**19
    assert message(2**26, 32, 32, network=False, many_nodes=False, buffer=2**24) == usual
    assert message(2**26, 32, 32, network=False, many_nodes=False, buffer=2**20).chunk == 2**17


def test_schedule_and_closed_form_of_messages_take_the_same_buffer():
    for words in ("", ":buffer=16MiB"):
        assert "buffer" in prepare(f"nccl_all_to_all{words}", "dgx-h100").launch.parameters(2**20) or not words
    usual, large, small = (
        prepare(f"nccl_all_to_all{words}", "dgx-h100").predict(2**26).time
        for words in ("", ":buffer=16MiB", ":buffer=64KiB")
    )
    assert usual == large
    assert small <= usual  # the first chunk is there sooner


def test_a_rank_over_sockets_copies_as_fast_as_its_threads_and_no_faster_than_its_nic():
    def rate(nic, net, words=""):
        ready = prepare(f"nccl_all_reduce:algorithm=ring,protocol=simple{words}", TWO.format(nic, net))
        return 2**29 / (ready.predict(2**30).time - ready.predict(2**29).time)

    assert rate("400Gbps", "sockets") == pytest.approx(5.25e9, rel=0.1)
    assert rate("400Gbps", "ena") == pytest.approx(2.07e9, rel=0.1)
    assert rate("400Gbps", "sockets", ",socket_threads=2") == pytest.approx(2 * 5.25e9, rel=0.1)
    assert rate("10Gbps", "sockets") == pytest.approx(0.98 * 1.25e9, rel=0.1)
    assert rate("400Gbps", "ena", ",socket_threads=4") == pytest.approx(2 * 2.07e9, rel=0.1)


def test_ll_over_slingshot_was_announced_by_the_software_up_to_2025():
    old, new = (costs().of_network(name) for name in ("slingshot-2025", "slingshot"))
    assert (old.hop_ll, old.efficiency, old.protocols) == (new.hop_ll, new.efficiency, new.protocols)
    assert old.announced("ll", 2**16, 4) > 0
    assert new.announced("ll", 2**16, 4) == 0
    times = [prepare("nccl_all_reduce:protocol=ll", f"alps{net}@star:machines=2").predict(2**18).time
             for net in ("", ":net=slingshot-2025")]  # fmt: skip
    assert times[1] > 2 * times[0]
