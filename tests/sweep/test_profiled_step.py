import pytest
from traced_programs import data_parallel

from commsim import predict
from commsim.core.errors import InputError
from commsim.sweep.compute import Bench, check_workload
from commsim.sweep.config import read_config


def test_a_profile_is_swept_over_networks_and_ranks(tmp_path):
    for rank in range(2):
        data_parallel(rank, 2, (0.002, 0.003, 0.001), (0.004, 0.004)).write(tmp_path / f"rank{rank}.json")
    tree = {"topology": {"name": "star", "n_hosts": 8, "bandwidth": ["10Gbps", "100Gbps"]},
            "workload": {"profile": f"{tmp_path}/rank*.json", "ranks": [2, 8]}}  # fmt: skip
    config = read_config(tree)
    assert sorted(config.files) == [str(tmp_path / f"rank{rank}.json") for rank in range(2)]
    bench = Bench(config.kinds)
    for bandwidth in (10, 100):
        for ranks in (2, 8):
            on = {"topology.name": "star", "topology.n_hosts": 8, "topology.bandwidth": bandwidth * 1e9 / 8}
            what = {"workload.profile": f"{tmp_path}/rank*.json", "workload.ranks": ranks}
            row = bench.row(0, on | what)
            network = f"star:n_hosts=8,bandwidth={bandwidth}Gbps"
            first, second = (predict("ring_all_reduce", network, size, n_ranks=ranks).time for size in (8e6, 4e6))
            step = max(0.002 + first, 0.005) + second + 0.001
            assert (row["n_ranks"], row["iteration_s"]) == (ranks, pytest.approx(step, 1e-6))
            assert row["exposed_comm_s"] == pytest.approx(step - 0.006, 1e-5)
            assert any("pauses that no call explains" in remark["text"] for remark in row["remarks"])


def test_what_goes_with_a_profile_is_refused_without_one():
    with pytest.raises(InputError, match=r"workload\.ranks needs workload\.profile"):
        check_workload({"workload.graph": "g.toml", "workload.ranks": 8, "workload.bandwidth": 1.0})
    with pytest.raises(InputError, match=r"workload\.policy needs workload\.trace"):
        check_workload({"workload.profile": "p.json", "workload.policy": "ddp", "workload.bandwidth": 1.0})
