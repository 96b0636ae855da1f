"""Hosts and GPUs that fail take their ranks along; what is left runs without a placement."""

import pytest

import commsim as cs
from commsim.cli import main
from commsim.core.errors import InputError

RAILS = "dgx-h100@rail_optimized:machines=4"


@pytest.mark.parametrize("operation", ["all_reduce", "all_gather"])
def test_it_does_not_matter_which_machine_has_lost_a_gpu(operation):
    """NCCL takes the fewest channels of any node, whatever its number: 14 over 7 NICs."""
    spec = f"nccl_{operation}"
    lists = [",".join(f"m{i}x{7 if i == short else 8}" for i in range(4)) for short in range(4)]
    times = {cs.predict(spec, RAILS, "1GiB", placement=placement).time for placement in lists}
    assert len(times) == 1
    assert times == {cs.predict(spec, RAILS, "1GiB", fail=[f"gpu:m{i}.gpu7"]).time for i in (0, 3)}
    if operation == "all_reduce":  # 2 x 30/31 of the data over 7 of 8 NICs of 48 GB/s at most, by hand
        assert 2 * 30 / 31 * 2**30 / (7 * 48e9) < times.pop() < 1.15 * 2 * 30 / 31 * 2**30 / (7 * 48e9)


@pytest.mark.parametrize(
    ("network", "fail", "placement"),
    [
        ("star:n_hosts=4", "host:h1", "h0,h2,h3"),
        ("star:n_hosts=5", "host:h1-2", "h[0,3-4]"),
        ("dgx-h100@star:machines=3", "host:m1", "m0,m2"),
        ("leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2", "host:h3", "h0-2"),
    ],
)
def test_what_is_left_runs_as_if_it_were_named(network, fail, placement):
    left, named = (cs.predict("ring_all_reduce", network, "1MiB", fail=[fail], placement=p) for p in (None, placement))
    assert (left.time, left.n_ranks) == (named.time, named.n_ranks)


def test_the_title_names_the_gpu_and_the_cost_is_that_of_the_same_size_on_all_ranks(capsys):
    """31 of 32 GPUs share 7 of 8 NICs: 8/7 of the time, a little less bytes, and a ring in place of a tree."""
    assert main(["run", "--topology", RAILS, "--size", "1G", "--fail", "gpu:m0.gpu3"]) == 0
    said = capsys.readouterr().out
    assert f"nccl_all_reduce on {RAILS} without m0.gpu3, 31 ranks, ring/simple, engine" in said
    assert "# whole(us): of the same size on 32 ranks, of which 31 are left" in said
    left, whole = cs.predict("nccl", RAILS, "1GiB", fail=["gpu:m0.gpu3"]), cs.predict("nccl", RAILS, "1GiB")
    assert left.whole == whole.time
    assert f"{left.time / whole.time:.3f}x" in said
    assert 8 / 7 * 0.95 < left.faults_cost < 8 / 7 * 1.1


@pytest.mark.parametrize("network", ["star:n_hosts=8", "leaf_spine:n_leaves=2,n_spines=4,hosts_per_leaf=4"])
def test_a_lost_host_saves_a_ring_the_bytes_of_one_rank(network):
    found = cs.predict("ring_all_reduce", network, "64MiB", fail=["host:h0"], overhead="0us")
    assert found.n_ranks == 7
    assert found.faults_cost == pytest.approx((6 / 7) / (7 / 8), rel=1e-3)


def test_a_number_of_ranks_that_was_asked_for_runs_without_the_fault_too():
    found = cs.predict("ring_all_reduce", "star:n_hosts=8", "64MiB", fail=["host:h7"], n_ranks=4)
    assert (found.n_ranks, found.faults_cost) == (4, pytest.approx(1))


def test_expect_compares_with_all_gpus(capsys):
    (one,) = cs.expect(RAILS, ["all_reduce"], ["1GiB"], fail=["gpu:m0.gpu3"]).sizes
    (whole,) = cs.expect(RAILS, ["all_reduce"], ["1GiB"]).sizes
    assert one.healthy == whole.busbw > one.busbw


def test_ranks_that_are_placed_on_what_fails_are_refused():
    with pytest.raises(InputError, match="no path"):
        cs.predict("ring_all_reduce", "star:n_hosts=4", "1MiB", fail=["host:h1"], placement="packed")
    with pytest.raises(InputError, match="no path"):
        cs.predict("nccl", RAILS, "1MiB", fail=["gpu:m0.gpu3"], placement="m0-3")


@pytest.mark.parametrize(
    ("fail", "message"),
    [
        ("gpu:m0.gpu9", "has no GPU 'm0.gpu9'; GPUs are m0.gpu0 to m3.gpu7"),
        ("gpu:m0.nic0", "has no GPU 'm0.nic0'"),
        ("m0.gpu3", "did you mean gpu:m0.gpu3"),
    ],
)
def test_what_is_no_gpu_is_refused(fail, message):
    with pytest.raises(InputError, match=message):
        cs.predict("nccl", RAILS, "1MiB", fail=[fail])
