"""Costs of kernels of expert parallelism: what each constant does, on which links, and whose they are."""

import dataclasses

import numpy as np
import pytest

from collectives.experts.copies import copies_for
from commsim.core.errors import InputError
from commsim.experts.kernels import (
    ExchangeWork,
    ExpertKernel,
    kernel_for,
    kernel_of_table,
    known_kernels,
    seconds,
    seen_by,
)
from commsim.experts.work import work_of
from commsim.prediction.inputs import load_network
from commsim.prediction.read import scenario_of
from commsim.prediction.solve import solve

WORK = ExchangeWork(tokens=100, local=100, copies=800, remote=700, n_ranks=8, n_machines=1, n_experts=8, n_bytes=1000.0)


def test_a_low_latency_kernel_has_as_many_sms_at_work_as_experts_have_groups():
    kernel = ExpertKernel(launch=1e-6, group=1e-6, read=2e-6, sms=132)

    def time(n_experts):
        return seconds(kernel, dataclasses.replace(WORK, n_experts=n_experts), 0.0, per_expert=True)

    assert time(8) == pytest.approx(1e-6 + 100 * 2e-6 / 8)  # 8 SMs
    assert time(160) == pytest.approx(2e-6 + 100 * 2e-6 / 80)  # two groups on each of 80 SMs
    assert time(256) == pytest.approx(2e-6 + 100 * 2e-6 / 128)


def test_links_sms_and_the_channel_of_a_pair_work_at_the_same_time_and_the_longest_counts():
    kernel = ExpertKernel(launch=0.0, copy=1e-6, copy_rate=1e9, pair=0.5e-6, sms=10)
    of_sms, of_pair = 800 * 2e-6 / 10, 700 / 7 * 0.5e-6
    assert seconds(kernel, WORK, 0.0, per_expert=False) == pytest.approx(of_sms)
    assert seconds(kernel, WORK, 0.0, 80, per_expert=False) == pytest.approx(of_pair)
    assert seconds(kernel, WORK, 1.0, per_expert=False) == 1.0
    several = dataclasses.replace(WORK, n_machines=2)
    twice = dataclasses.replace(kernel, between=2.0)
    assert seconds(twice, several, 0.0, per_expert=False) == pytest.approx(2 * of_sms)


def test_a_kernel_slows_nvlinks_and_nics_and_no_link_of_the_fabric():
    network = load_network("dgx-h100@leaf_spine:machines=2,n_spines=2,hosts_per_leaf=8")
    share = seen_by(ExpertKernel(0.0, nvlink=0.5, network=0.25), network).bandwidth / network.bandwidth
    names = [f"{network.nodes[a]}:{network.nodes[b]}" for a, b in zip(network.src, network.dst, strict=True)]
    assert {s for s, name in zip(share, names, strict=True) if "m0.gpu3:m0.nvswitch0" in name} == {0.5}
    assert {s for s, name in zip(share, names, strict=True) if "nic" in name} == {0.25}
    assert {s for s, name in zip(share, names, strict=True) if name.startswith("leaf") and "spine" in name} == {1.0}


def test_work_is_that_of_the_busiest_rank_with_copies_to_machines_counted_once():
    machines = ((0, 1), (2, 3))
    made = copies_for(4, 8, 4, 4, "normal", "uniform", 1.0, 0, 0, 0, False, machines)  # every token to every rank
    work = work_of(made, 4, machines, 8, 8, 4, 10.0)
    assert (work.copies, work.remote) == (8 * (4 + 2), 8 * 3)


def test_all_constants_say_what_they_are_fitted_on_and_shares_are_shares():
    for of_gpu in known_kernels().values():
        for kernel in of_gpu.values():
            assert kernel.tables
            assert 0 < kernel.nvlink <= 1
            assert 0 < kernel.network <= 1


def test_a_gpu_without_constants_has_those_of_the_next_one_and_it_is_said():
    same, said = kernel_for("deepep_normal_dispatch", "h200")
    assert same == kernel_for("deepep_normal_dispatch", "h100")[0]
    assert "constants of H100" in said
    with pytest.raises(InputError, match="no costs are known of deepep_fast_dispatch"):
        kernel_for("deepep_fast_dispatch", "h100")
    with pytest.raises(InputError, match="unknown constant 'lanch_us'"):
        kernel_of_table({"lanch_us": 1.0}, "x")


def test_oversubscription_and_a_dead_uplink_slow_a_dispatch_down_by_what_they_take_away():
    fabric = "dgx-h100@leaf_spine:machines=4,n_spines=2,hosts_per_leaf=16,uplinks_per_spine="

    def time(cables=8, **more):
        asked = scenario_of(
            "ep_dispatch:tokens=64,library=deepep,max_machines=2", f"{fabric}{cables}", routing="ecmp", hashes=1, **more
        )
        return solve(asked, [1.0]).results[0].time

    whole, half, dead = time(), time(4), time(fail=["link:leaf0:spine0"])
    assert whole < half
    assert whole < dead


def test_fewer_sms_take_longer_and_the_time_without_a_library_is_the_links():
    def time(text):
        return solve(scenario_of(f"ep_combine:tokens=2048,{text}", "dgx-h100"), [1.0]).results[0].time

    few, many = time("library=deepep,sms=4"), time("library=deepep,sms=24")
    assert few > 3 * many
    assert time("library=none") < many
    assert np.isfinite(many)
