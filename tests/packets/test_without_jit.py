"""The packet engine as plain Python: integers that wrap around and flags that are taken away behave as compiled."""

import pytest

from commsim.cli import main
from switch_model.systems import SYSTEMS

pytestmark = pytest.mark.nojit


@pytest.mark.parametrize("system", sorted(SYSTEMS))
def test_every_system_adds_right_without_the_jit(system: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["switch", "simulate", "--system", system, "--workers", "3", "--size", "4KiB"]) == 0
    table = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("#")]
    assert [line.split()[-1] for line in table] == ["exact", "yes"]


@pytest.mark.parametrize("system", ["atp", "switchml_udp", "switchml_rdma", "panama", "omnireduce"])
def test_losses_are_repaired_without_the_jit(system: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--system", system, "--workers", "3", "--size", "4KiB", "--loss", "0.05", "--jobs", "2"]
    assert main(["switch", "simulate", *options]) == 0
    table = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("#")]
    assert [line.split()[-1] for line in table] == ["exact", "yes", "yes"]


@pytest.mark.parametrize("transport", ["window", "dctcp", "dcqcn"])
def test_every_transport_carries_a_ring_without_the_jit(transport: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--collective", "ring_all_reduce", "--topology", "star:n_hosts=3", "-b", "4K", "-e", "4K"]
    assert main(["run", *options, "--engine", "packet", "--transport", transport]) == 0
    assert " 4096 " in capsys.readouterr().out


FABRIC = ("--topology", "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=3,bandwidth=100Gbps", "--engine", "packet")
# Few and short messages, in which queues fill, packets are lost, marked or trimmed, and sent again: what must happen.
CROWDED = {
    "--transport nscc --buffer 10kB --ecn 5kB:9kB": "trimmed",
    "--transport nscc --balancing adaptive --loss 5%": "drops_loss",
    "--transport nscc --balancing flowlet --ecn 5kB:9kB": "marks",
    "--transport rccc --buffer 10kB --loss 5%": "timeouts",
    "--transport dctcp --loss 5%": "retransmissions",
    "--transport dctcp --buffer 10kB --no-trimming --ecn 5kB:9kB": "drops_full",
    "--transport dcqcn --loss 5% --ecn 5kB:9kB": "marks",
    "--transport window --loss 5% --recovery go-back-n": "retransmissions",
    "--transport window --buffer 10kB --reduce-rate 1GB/s": "retransmissions",
    "--transport swift --balancing mixed --buffer 10kB": "trimmed",
    "--transport hpcc --buffer 10kB --loss 5%": "retransmissions",
    "--transport timely --loss 5%": "timeouts",
}


@pytest.mark.parametrize(("flags", "happens"), CROWDED.items())
def test_crowded_queues_are_empty_in_the_end_without_the_jit(commsim, flags, happens):
    (row,) = commsim.results("run", "direct_all_to_all", *FABRIC, *flags.split(), "-b", "96K", "-e", "96K")["results"]
    assert row["counters"][happens] > 0


def test_packets_of_a_flow_and_of_links_are_written_without_the_jit(commsim, tmp_path):
    trace = ("trace", "direct_all_to_all", *FABRIC, "-b", "96K", "-e", "96K", "-o", tmp_path / "0.csv", "--flow", "0:3")
    assert commsim(*trace, "--transport", "nscc", "--buffer", "10kB").code == 0
    assert len((tmp_path / "0.csv").read_text().splitlines()) > 10
    words = ("switch", "simulate", "--workers", "3", "--size", "4KiB", "--pcap", tmp_path / "x.pcap")
    assert commsim(*words, "--sample-every", "1us").code == 0
    assert (tmp_path / "x.pcap").stat().st_size > 1000


def test_sums_and_recurrences_take_as_long_as_events_without_the_jit(commsim):
    words = ("run", "ring_all_reduce", *FABRIC, "-b", "96K", "-e", "96K")
    times = [commsim.results(*words, "--reduce-rate", rate)["results"][0]["time_s"] for rate in ("1GB/s", "1TB/s")]
    assert times[0] - times[1] == pytest.approx(5 * 2**14 * (1e-9 - 1e-12))
    words = ("switch", "simulate", "--system", "sharp", "--workers", "3", "--size", "16KiB", "--no-values")
    both = [commsim.results(*words, "--engine", engine)["results"][0]["time_s"] for engine in ("event", "recurrence")]
    assert both[0] == both[1]
