"""A log of other GPUs than the machines have is refused, before anything is said of its times."""

import pytest

import commsim as cs
from commsim.core.errors import InputError
from commsim.diagnosis.gpus_of_log import require_gpus
from commsim.prediction.inputs import network_of


def named(path, gpu, machine="hgx-h100"):
    """Write a log of one machine, whose table of ranks names a GPU."""
    text = cs.fake_nccl_tests(machine, sizes=["1GiB", "4GiB", "8GiB"])
    lines = [f"#  Rank {k:2} Group  0 Pid 10 on node1 device {k} [0x1b] {gpu}" for k in range(8)]
    path.write_text("\n".join([*lines, *(line for line in text.splitlines() if "Rank" not in line)]) + "\n")
    return path


@pytest.mark.parametrize("gpu", ["NVIDIA H100 80GB HBM3", "AMD Instinct MI300X"])
def test_gpus_of_another_generation_are_refused_unless_it_is_asked_for(commsim, tmp_path, gpu):
    path = named(tmp_path / "a.log", gpu, "hgx-a100")
    said = f"its GPUs are {gpu}"
    assert said in commsim.refuses("expect", "hgx-a100", "--from", path)
    assert said in commsim.refuses("compare", path, "--topology", "hgx-a100")
    assert commsim("expect", "hgx-a100", "--from", path, "--other-gpus").code == 0
    assert commsim("compare", path, "--topology", "hgx-a100", "--other-gpus").code == 0
    assert "--other-gpus goes with" in commsim.refuses("expect", "hgx-a100", "--other-gpus")


def test_a_rate_beside_a_healthy_log_is_held_to_the_logs_machines_too(commsim, tmp_path):
    log = named(tmp_path / "good.log", "NVIDIA H100 80GB HBM3", "hgx-a100")
    asked = ("compare", log, "--busbw", "120GB/s", "--topology", "hgx-a100", "--operation", "all_reduce")
    assert "its GPUs are NVIDIA H100" in commsim.refuses(*asked)
    assert commsim(*asked, "--other-gpus").code == 0
    alone = ("compare", *asked[2:], "--other-gpus")
    assert "--other-gpus has no effect on --busbw without a file" in commsim.refuses(*alone)


def test_gpus_of_the_generation_and_unknown_ones_are_taken(tmp_path):
    for gpu in ("NVIDIA H200", "a GPU"):
        require_gpus(str(named(tmp_path / "a.log", gpu)), network_of("hgx-h100"))
    h100 = str(named(tmp_path / "a.log", "NVIDIA H100"))
    require_gpus(h100, network_of("star:n_hosts=8"))
    with pytest.raises(InputError, match="those of mi300x are cdna3"):
        require_gpus(h100, network_of("mi300x"))
