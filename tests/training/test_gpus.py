"""The table of accelerators."""

import pytest

from commsim.core.errors import InputError
from commsim.training.gpus import gpu, known_gpus
from topologies.presets import PRESETS


def test_every_accelerator_has_a_source_and_a_machine_that_exists():
    for one in known_gpus().values():
        assert one.source
        assert one.machine in PRESETS
        assert one.peak("bf16") > 1e13 < 100 * one.memory
        assert all(p in one.peaks and 0.3 < share < 1 for p, share in one.matmul.items())
        assert bool(one.matmul) == bool(one.matmul_source)


def test_a_precision_that_nobody_measured_has_the_share_of_the_nearest_wider_one():
    b200 = gpu("b200")
    assert b200.efficiency("fp4") == b200.efficiency("fp8") != b200.efficiency("bf16")
    assert "measured with fp8" in b200.source_line("fp4")


def test_an_unknown_accelerator_or_precision_is_one_line():
    with pytest.raises(InputError, match=r"'x100'; did you mean v100 or h100 or a100\? 16 are known"):
        gpu("x100")
    with pytest.raises(InputError, match="precision of a100 must be one of bf16, tf32, fp32, got 'fp8'"):
        gpu("a100").peak("fp8")
