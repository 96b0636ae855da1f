"""One description, one answer: flow engine, packet engine and `switch simulate` on in-network aggregation."""

import json
from pathlib import Path

import pytest

from benchmarks.accuracy.in_network_agreement import NETWORKS, rows
from commsim.cli import main
from commsim.prediction.build import prepare


@pytest.mark.sample(14)
@pytest.mark.sample(4, each="name")
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("name", ["switchml", "atp", "sharp", "panama", "netreduce", "flare", "iswitch"])
@pytest.mark.parametrize("size", [1000, 1 << 14, 1 << 20])
def test_the_packet_engine_is_switch_simulate_and_the_flow_engine_is_close(
    name: str, network: str, size: int, tmp_path: Path
) -> None:
    ready = prepare(name, NETWORKS[network], n_ranks=8)
    packet = ready.predict(size, engine="packet")
    path = tmp_path / "simulated.json"
    more = ["--topology", NETWORKS[network], "--workers", "8", "--size", f"{size}B", "--json", str(path)]
    assert main(["switch", "simulate", "--system", name, *more]) == 0
    (row,) = json.loads(path.read_text())["results"]
    assert row["exact"]
    assert packet.time == row["time_s"]
    assert packet.link_bytes.sum() == row["bytes_on_wire"]
    flow, view = ready.predict(size), ready.view(size)
    assert view is not None
    shared = any("streams" in difference for difference in view.differences)  # 2 of 3 racks, on one spine
    assert flow.time == pytest.approx(packet.time, rel=0.2 if shared else 0.02)
    assert flow.link_bytes.sum() == pytest.approx(packet.link_bytes.sum(), rel=1e-3)


@pytest.mark.parametrize(
    "spec", ["switchml:system=switchml_udp,pool_size=16,elements_per_packet=64", "switchml:pool=2", "atp:window=10"]
)
def test_parameters_of_the_system_reach_both_engines(spec: str) -> None:
    plain, ready = (prepare(text, NETWORKS["star"], n_ranks=8) for text in (spec.split(":")[0], spec))
    flow, packet = ready.predict(1 << 20), ready.predict(1 << 20, engine="packet")
    assert packet.time > plain.predict(1 << 20, engine="packet").time
    assert flow.time == pytest.approx(packet.time, rel=0.15)


@pytest.mark.deep
@pytest.mark.slow
def test_the_table_of_the_documentation_has_27_rows_whose_packets_and_slots_agree() -> None:
    cells = list(rows())
    assert len(cells) == 27
    assert all(row[4] == row[5] for row in cells)
    assert all(abs(float(row[3]) / float(row[4]) - 1) < 1e-3 or row[-1] != "-" for row in cells)
