"""Logs held against what machines should reach: healthy ones pass, slow ones do not, others are refused."""

import pytest

import commsim as cs
from commsim.core.errors import InputError

TWO = "hgx-h100@star:machines=2"
SIZES = ["1MiB", "64MiB", "1GiB", "8GiB"]


def log(path, network=TWO, factor=1.0):
    """Write what nccl-tests would print where each call takes `factor` times as long as predicted."""
    text = cs.fake_nccl_tests(network, sizes=SIZES)
    if factor != 1.0:
        lines = []
        for line in text.splitlines():
            cells = line.split()
            if cells[:1] and cells[0].isdecimal():
                for i in (5, 9):
                    cells[i] = f"{float(cells[i]) * factor:.2f}"
                    cells[i + 1], cells[i + 2] = (f"{float(rate) / factor:.3f}" for rate in cells[i + 1 : i + 3])
                line = "  ".join(cells)
            lines.append(line)
        text = "\n".join(lines) + "\n"
    path.write_text(text)
    return str(path)


def test_a_prediction_is_healthy_and_its_machines_are_counted(tmp_path):
    found = cs.check_log(log(tmp_path / "a.log"), "hgx-h100")
    assert found.is_healthy
    assert found.expected.network == TWO
    assert [row.verdict for row in found.rows] == ["normal"] * 4
    assert [row.ratio for row in found.rows] == pytest.approx([1.0] * 4, rel=0.01)


def test_times_five_times_as_long_are_below_the_floor(tmp_path):
    found = cs.check_log(log(tmp_path / "a.log", factor=5.0), TWO)
    assert [row.expected.size for row in found.below] == [2**26, 2**30, 2**33]
    assert not found.is_healthy


def test_the_rate_is_that_of_the_log_and_so_a_size_has_a_lower_floor(tmp_path):
    path = log(tmp_path / "a.log")
    of_log = cs.check_log(path, TWO).expected
    of_size = cs.expect(TWO, ["all_reduce"], SIZES)
    assert of_log.false_alarms < of_size.false_alarms
    assert all(a.floor < b.floor for a, b in zip(of_log.sizes, of_size.sizes, strict=True))
    assert of_log.share_of_a_log("all_reduce") == pytest.approx(0.01)


def test_a_log_of_other_ranks_than_the_network_s_is_refused(tmp_path):
    path = log(tmp_path / "a.log")
    with pytest.raises(InputError, match=r"measured on 16 ranks, hgx-h100@star:machines=3 has 24"):
        cs.check_log(path, "hgx-h100", machines=3)
    with pytest.raises(InputError, match="measured on 16 ranks, got 8"):
        cs.check_log(path, "hgx-h100", n_ranks=8)
    assert cs.check_log(path, "hgx-h100@star:machines=3", n_ranks=16).expected.n_ranks == 16
