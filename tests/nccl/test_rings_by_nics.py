"""NCCL's rings leave a machine by its NICs as plain rings do (`tests/prediction/test_good_parameters.py`)."""

import pytest

from commsim import predict

PCIE = "pcie_host:n_gpus=4,n_nics={},n_cpus={},nic=100Gbps@star:machines=6"


def time(collective, *counts):
    return predict(collective, PCIE.format(*counts), 2**26, overhead="0us").time


def test_two_nics_of_four_gpus_take_half_the_time():
    rings = "nccl_all_reduce:algorithm=ring"
    assert time(rings, 2, 1) == pytest.approx(time(rings, 1, 1) / 2, rel=0.06)


def test_rings_leave_by_the_gpu_that_is_nearest_to_the_nic():
    assert time("nccl_all_reduce:algorithm=ring", 1, 2) == pytest.approx(time("ring_all_reduce", 1, 2), rel=0.01)
