"""Floors as nccl-tests and node health checks take them."""

import re
from statistics import fmean

import pytest

import commsim as cs
from commsim.core.errors import InputError
from commsim.diagnosis.floor_exports import nccl_tests_lines, node_health_lines


def test_nccl_tests_fails_below_nine_tenths_of_what_it_is_given():
    found = cs.expect("dgx-h100", ["all_reduce"], ["1GiB", "4GiB", "16GiB"])
    (line,) = nccl_tests_lines(found)
    least = re.fullmatch(r"NCCL_TESTS_MIN_BW=([\d.]+) all_reduce_perf -b 1G -e 16G -f 4 -g 1", line)
    assert float(least[1]) * 0.9 == pytest.approx(fmean(one.floor for one in found.sizes) / 1e9, rel=1e-3)


def test_a_health_check_has_a_floor_for_each_size_of_one_machine():
    found = cs.expect("dgx-h100", ["all_reduce"], ["8GiB", "16GiB"])
    floors = [f"{one.floor / 1e9:.1f}" for one in found.sizes]
    expected = [f" * || check_nccl_allreduce {floors[0]} 1 8G", f" * || check_nccl_allreduce {floors[1]} 1 16G"]
    assert node_health_lines(found) == expected
    with pytest.raises(InputError, match="inside of one machine"):
        node_health_lines(cs.expect("dgx-h100", ["all_reduce"], ["8GiB"], machines=2))


def test_sizes_that_nccl_tests_cannot_step_through_are_refused():
    with pytest.raises(InputError, match="one whole factor"):
        nccl_tests_lines(cs.expect("dgx-h100", ["all_reduce"], ["1GiB", "3GiB", "4GiB"]))
