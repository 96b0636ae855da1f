"""Logs held against what machines should reach: healthy ones pass, slow ones do not, others are refused."""

import math
from pathlib import Path

import pytest

import commsim as cs
from commsim.core.errors import InputError
from commsim.diagnosis.check_log import ALARMS, least_middle
from commsim.formats.measured import read_measured

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


def test_large_sizes_at_61_percent_of_what_is_expected_are_below_the_floor(tmp_path):
    found = cs.check_log(log(tmp_path / "a.log", factor=1 / 0.61), TWO)
    assert [(one.sizes, one.n_sizes, one.is_below) for one in found.classes] == [
        ("middle", 1, False), ("large", 3, True),
    ]  # fmt: skip
    assert not found.is_healthy
    assert found.classes[1].ratio == pytest.approx(0.61, rel=1e-3)


def test_one_size_that_is_far_out_is_named_and_makes_no_log_unhealthy(tmp_path):
    slow = log(tmp_path / "slow.log", factor=5.0)
    lines = Path(log(tmp_path / "a.log")).read_text().splitlines()
    spike = [line for line in Path(slow).read_text().splitlines() if str(2**30) in line.split()]
    lines = [spike[0] if str(2**30) in line.split() else line for line in lines]
    (tmp_path / "a.log").write_text("\n".join(lines) + "\n")
    found = cs.check_log(str(tmp_path / "a.log"), TWO)
    assert [row.expected.size for row in found.below] == [2**30]
    assert found.is_healthy


def test_rows_at_other_sizes_make_no_verdict_milder():
    """A log was healthy whose rows from 512 MiB on alone were below, since rows at 16 to 64 MiB were fast."""
    large = {2.0**power: 0.61 for power in range(29, 34)}
    assert least_middle(large) == 0.61
    for more in ({2.0**24: 1.5}, {2.0**power: 1.2 for power in range(24, 29)}):
        assert least_middle(large | more) == 0.61
    assert least_middle({2.0**30: 1.0, 2.0**31: 1.1, 2.0**32: 0.2, 2.0**29: 0.9}) == 0.95
    assert least_middle({2.0**30: 0.5}) == least_middle({2.0**30: 0.5, 2.0**26: 1.0}) == 0.5
    assert least_middle({2.0**30: 0.8, 2.0**26: 0.4}) == pytest.approx(0.6)


def test_the_floor_of_a_class_is_the_same_whatever_other_classes_a_log_has(tmp_path):
    path = log(tmp_path / "a.log")
    found = cs.check_log(path, TWO, false_alarms=0.05)
    large = found.expected.errors.middles["large"]
    assert found.classes[1].floor == pytest.approx(math.exp(-large.exceeded(0.05 * ALARMS["large"])))
    assert (found.classes[1].n_tables, found.classes[1].n_operators) == large[3:]
    assert sum(ALARMS.values()) == pytest.approx(1)
    assert found.expected.sizes == cs.expect(TWO, ["all_reduce"], SIZES, false_alarms=0.05).sizes


@pytest.mark.parametrize(("machines", "allowed"), [(None, False), (5, False), (8, True), (9, True)])
def test_a_log_that_says_no_ranks_is_refused_where_its_rates_are_of_others(tmp_path, machines, allowed):
    path = tmp_path / "all_reduce.log"
    row = "1073741824 268435456 float sum -1 800000 1.34 2.64 0 800000 1.34 2.64 0"
    path.write_text(f"# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n{row}\n")
    (read,) = {one.ranks_between for one in read_measured(path)}
    assert 40 < read[0] <= 64 <= 72 <= read[1]
    if allowed:
        assert cs.check_log(path, "hgx-h100", machines=machines).expected.sizes
    else:
        with pytest.raises(InputError, match=f"busbw over algbw is that of {read[0]} to {read[1]} ranks, got"):
            cs.check_log(path, "hgx-h100", machines=machines)


def test_a_list_of_rates_is_checked_where_its_ranks_are_said(tmp_path):
    path = tmp_path / "all_reduce.csv"
    path.write_text("bytes,busbw\n1073741824,430\n")
    with pytest.raises(InputError, match=r"its busbw needs the number of ranks \(--ranks\)"):
        cs.check_log(path, "hgx-h100@star:machines=2")
    (row,) = cs.check_log(path, "hgx-h100@star:machines=2", n_ranks=16).rows
    assert row.busbw == pytest.approx(430e9)


def test_a_log_of_other_ranks_than_the_network_s_is_refused(tmp_path):
    path = log(tmp_path / "a.log")
    with pytest.raises(InputError, match=r"measured on 16 ranks, hgx-h100@star:machines=3 has 24"):
        cs.check_log(path, "hgx-h100", machines=3)
    with pytest.raises(InputError, match="measured on 16 ranks, got 8"):
        cs.check_log(path, "hgx-h100", n_ranks=8)
    assert cs.check_log(path, "hgx-h100@star:machines=3", n_ranks=16).expected.n_ranks == 16
