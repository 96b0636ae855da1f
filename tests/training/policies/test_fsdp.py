import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.training.backward_trace import BackwardTrace
from commsim.training.cost_by_formula import closed_form_costs
from commsim.training.data_parallel import sent_bytes, train
from commsim.training.data_parallel_setting import TrainingSetting

sizes = st.lists(st.integers(1, 50).map(float), min_size=1, max_size=10)


def setting(n_bytes, n_workers=8, bandwidth=1.0, **more):
    n = len(n_bytes)
    trace = BackwardTrace(np.array(n_bytes), 2 * np.arange(1.0, n + 1), np.ones(n))
    return TrainingSetting(trace, n_workers, closed_form_costs(0.0, bandwidth), **more)


def sent(policy, given_):
    return sent_bytes(train(policy, given_).timeline.graph)


@given(n_bytes=sizes, n_workers=st.sampled_from([2, 3, 8]), unit=st.sampled_from([1, 20, 10**6]))
def test_fsdp_moves_one_and_a_half_times_what_ddp_moves_and_zero_1_and_2_as_much(n_bytes, n_workers, unit):
    case = setting(n_bytes, n_workers)
    ddp = sent("ddp", case)
    assert ddp == pytest.approx(2 * (n_workers - 1) / n_workers * sum(n_bytes), rel=1e-12)
    for policy in ("fsdp", "zero3", "fsdp:prefetch=0"):
        assert sent(f"{policy}{',' if ':' in policy else ':'}unit={unit}B", case) == pytest.approx(1.5 * ddp, rel=1e-12)
    for policy in ("zero1", "zero2", "fsdp:reshard=false"):
        assert sent(policy, case) == pytest.approx(ddp, rel=1e-12)


def test_hybrid_sharding_gathers_within_groups_and_all_reduces_a_share_between_them():
    case = setting([24.0, 24.0])
    tasks = train("fsdp:shard=4,unit=1B", case).timeline.graph.tasks
    groups = {task.operation: task.group for task in tasks if task.operation}
    assert groups == {"all_gather": (0, 1, 2, 3), "reduce_scatter": (0, 1, 2, 3), "all_reduce": (0, 4)}
    assert sum(task.size for task in tasks if task.operation == "all_reduce") == 48 / 4
    assert sent("fsdp:shard=4,unit=1B", case) == 3 * 48 * 3 / 4 + 48 / 4


def test_one_unit_is_gathered_while_the_one_before_it_computes_by_hand():
    # 2 workers at 1 byte/s: gathering or scattering 4 bytes takes 2 s; forward 1 s, backward 2 s a unit
    case = setting([4.0, 4.0], n_workers=2)
    training = train("fsdp:unit=1B", case)
    of = {row["task"]: (row["start_s"], row["end_s"]) for row in training.timeline.rows()}
    assert of["gather unit 0 forward"] == (0, 2)
    assert of["gather unit 1 forward"] == (2, 4)
    assert of["forward unit 1"] == (4, 5)
    assert of["gather unit 1 backward"] == (4, 6)
    assert of["backward unit 1"] == (6, 8)
    assert of["gather unit 0 backward"] == (6, 8)
    assert of["scatter unit 1"] == (8, 10)
    assert of["backward unit 0"] == (8, 10)
    assert of["scatter unit 0"] == (10, 12)
    assert training.iteration_time == 12
    assert training.exposed_communication == 12 - 6
    # without prefetching only the scattering of unit 1 could overlap, but unit 0 is gathered before it
    assert train("fsdp:unit=1B,prefetch=0", case).iteration_time == 2 + 1 + 2 + 1 + 2 + 2 + 2 + 2 + 2


def test_what_scatters_is_added_and_compressed_and_parameters_are_not():
    case = setting([8.0], n_workers=2, compression=2.0, add_time=lambda n_bytes: n_bytes)
    tasks = {t.operation: t for t in train("fsdp", case).timeline.graph.tasks if t.operation}
    assert (tasks["all_gather"].size, tasks["all_gather"].duration) == (8, 0)
    assert (tasks["reduce_scatter"].size, tasks["reduce_scatter"].duration) == (4, 4)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("fsdp:shard=3", "shard must divide the number of workers, 8, got 3"),
        ("fsdp:shard=0", "shard must divide"),
        ("fsdp:prefetch=-1", "prefetch must be 0 or more, got -1"),
    ],
)
def test_what_makes_no_sense_is_refused(policy, message):
    with pytest.raises(InputError, match=message):
        train(policy, setting([1.0]))


# 2 workers at 1 byte/s: scattering or gathering 4 bytes takes 2 s; a backward step 2 s, a forward step 1 s
SETTING = TrainingSetting(
    BackwardTrace(np.full(3, 4.0), np.array([2.0, 4.0, 6.0]), np.ones(3)), 2, closed_form_costs(0.0, 1.0)
)


def test_zero_2_overlaps_what_zero_1_leaves_to_the_end():
    one, two = (train(f"{name}:bucket=1B", SETTING).iteration_time for name in ("zero1", "zero2"))
    assert one == 6 + 3 * 2 + 6 + 3
    assert two == 6 + 2 + 6 + 3


@pytest.mark.parametrize("policy", ["zero1", "zero2"])
def test_gradients_are_scattered_in_buckets_and_parameters_gathered_once(policy):
    graph = train(f"{policy}:bucket=8B", SETTING).timeline.graph
    assert [(t.operation, t.size) for t in graph.tasks if t.operation] == [
        ("reduce_scatter", 8),
        ("reduce_scatter", 4),
        ("all_gather", 12),
    ]
    assert sent_bytes(graph) == 2 * 12 / 2
