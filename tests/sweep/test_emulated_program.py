"""An unchanged program as a point of a sweep: over networks, ranks and algorithms."""

import sys

import pytest

from commsim import predict
from commsim.core.errors import InputError
from commsim.core.spec import OwnFile
from commsim.sweep.compute import Bench, check_workload
from commsim.sweep.config import read_config

N_BYTES = 1 << 20
PROGRAM = f"""
from mpi4py import MPI
import numpy as np
mine, sums = np.ones({N_BYTES // 4}, np.float32), np.empty({N_BYTES // 4}, np.float32)
MPI.COMM_WORLD.Allreduce(mine, sums)
assert sums[0] == MPI.COMM_WORLD.size
print("not in the way of the table")
"""


def point(program, ranks, **more):
    on = {"topology.name": "star", "topology.n_hosts": 8, "topology.bandwidth": 1.25e9}
    return on | {"workload.program": OwnFile(f"{sys.executable} {program}"), "workload.ranks": ranks} | more


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


@pytest.mark.slow
def test_a_program_is_swept_over_ranks_algorithms_and_slow_links(program, capfd):
    star = {"name": "star", "n_hosts": 8, "bandwidth": "10Gbps"}
    work = {"program": f"{sys.executable} {program}", "ranks": [2, 4], "all_reduce": "ring_all_reduce"}
    config = read_config({"topology": star, "workload": work}, [program])
    assert str(program) in config.files
    bench = Bench(config.kinds)
    for ranks, name, scale in ((2, "ring_all_reduce", 1), (4, "ring_all_reduce", 1),
                               (4, "recursive_doubling_all_reduce", 1), (4, "ring_all_reduce", 0.5)):  # fmt: skip
        more = {"workload.all_reduce": name}
        more |= {"topology.scale": "link:h0->*=0.5; link:h1->*=1"} if scale != 1 else {}
        row = bench.row(0, point(program, ranks, **more))
        expected = predict(name, "star:n_hosts=8,bandwidth=10Gbps", N_BYTES, n_ranks=ranks,
                           scale=["link:h0->*=0.5"] if scale != 1 else ())  # fmt: skip
        assert row["n_ranks"] == ranks
        assert row["time_s"] == pytest.approx(expected.time, abs=10e-6)  # two barriers of the start and the end
        assert row["max_link_bytes"] == pytest.approx(float(expected.link_bytes.max()), rel=0.01)
    assert capfd.readouterr() == ("", "")


def test_what_fails_is_the_row_s_error_in_one_line(tmp_path):
    path = tmp_path / "fails.py"
    path.write_text("raise ValueError('no data here')")
    bench = Bench({"topology.name": "text", "topology.n_hosts": "whole", "topology.bandwidth": "bandwidth"})
    with pytest.raises(InputError, match=r"^ProgramError: rank [01]: .*ValueError.*no data here"):
        bench.row(0, point(path, 2))
    with pytest.raises(InputError, match="99"):
        bench.row(0, point(path, 99))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"workload.policy": "ddp"}, r"workload\.policy needs workload\.trace"),
        ({"workload.profile": "p.json"}, "one of"),
        ({"workload.program": "python 'p.py"}, "must be a command of a shell"),
        ({"workload.program": "  "}, "must be a command, such as"),
        ({"collective.name": "ring_all_reduce"}, "has no effect with"),
    ],
)
def test_what_is_no_parameter_of_a_program_is_refused(more, message):
    with pytest.raises(InputError, match=message):
        check_workload(point("p.py", 4, **more))


def test_a_program_needs_a_network_and_ranks_and_what_is_a_program_s_needs_one():
    with pytest.raises(InputError, match=r"needs topology\.name"):
        check_workload({"workload.program": "python p.py", "workload.ranks": 4})
    with pytest.raises(InputError, match=r"needs workload\.ranks"):
        check_workload({"workload.program": "python p.py", "topology.name": "star"})
    with pytest.raises(InputError, match=r"workload\.compute needs workload\.program"):
        check_workload({"workload.graph": "g.toml", "workload.compute": "none", "workload.bandwidth": 1.0})
