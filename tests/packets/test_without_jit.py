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
