import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.core.files.whole_files import write_tree
from commsim.profiles.calls import RecordedCall
from commsim.profiles.one_iteration import last_iteration, periodic_job, repeat_length, task_tables
from commsim.training.sharing.periodic import parse_jobs
from commsim.training.task_graph import read_graph


def slow_repeat_length(signatures):
    """Try every p, and see how far back its repeats reach."""
    best, reach = 0, 0
    n = len(signatures)
    for p in range(1, n // 2 + 1):
        length = p
        while length < n and signatures[n - 1 - length] == signatures[n - 1 - length + p]:
            length += 1
        if length >= 2 * p and length > reach:
            best, reach = p, length
    return best


@given(st.lists(st.integers(0, 2), max_size=14))
def test_the_repeat_is_the_one_that_a_slow_search_finds(signatures):
    assert repeat_length(signatures) == slow_repeat_length(signatures)


@given(st.lists(st.integers(5, 9), max_size=3), st.permutations([0, 1, 2, 3]), st.integers(2, 5))
def test_repeats_are_found_behind_a_warm_up(warm_up, pattern, times):
    assert repeat_length(warm_up + list(pattern) * times) == 4


def call(start, duration=2e-3, size=4e6, n_ranks=4, operation="all_reduce"):
    return RecordedCall(operation, size, n_ranks, start, duration)


CALLS = [c for i in range(4) for c in (call(i * 0.1 + 0.02), call(i * 0.1 + 0.05, size=8e6, duration=4e-3))]


def test_an_iteration_is_cut_where_calls_repeat_or_steps_are_marked():
    found = last_iteration(CALLS)
    assert [c.size for c in found.calls] == [4e6, 8e6]
    assert (found.n_seen, found.n_gpus, found.period) == (4, 4, pytest.approx(0.1))
    marked = last_iteration(CALLS, steps=[0.0, 0.1, 0.2, 0.3])
    assert (marked.n_seen, marked.begin, marked.period) == (3, 0.2, pytest.approx(0.1))
    assert [c.start for c in marked.calls] == pytest.approx([0.22, 0.25])
    once = [call(0.0), call(0.5, size=1.0)]
    with pytest.raises(InputError, match="so the iteration time is unknown; give it, as in --period 200ms"):
        last_iteration(once)
    assert len(last_iteration(once, period=0.2).calls) == 1


def test_the_job_sends_what_a_ring_sends():
    rows = [periodic_job(last_iteration(CALLS, steps=[0.0, 0.1, 0.2, 0.3]), "model")]
    job = parse_jobs(rows)[0]
    assert (job.name, job.n_gpus, job.period) == ("model", 4, pytest.approx(0.1))
    assert [phase.offset for phase in job.phases] == pytest.approx([0.02, 0.05])
    # an all-reduce of S on 4 ranks sends 2 * 3/4 S from each; over 2 and 4 ms
    assert [phase.rate for phase in job.phases] == pytest.approx([1.5 * 4e6 / 2e-3, 1.5 * 8e6 / 4e-3])
    with pytest.raises(InputError, match="call 0 of the iteration, all_reduce of 4000000 B, has no duration"):
        periodic_job(last_iteration([call(0.0, None)] * 4), "model")


def test_the_graph_keeps_when_calls_are_issued(tmp_path):
    iteration = last_iteration(CALLS, steps=[0.0, 0.1, 0.2, 0.3])
    path = tmp_path / "graph.toml"
    write_tree(path, task_tables(iteration))
    tasks = {task.name: task for task in read_graph(path).tasks}
    assert [tasks[name].duration for name in ("compute0", "compute1", "rest")] == pytest.approx([0.02, 0.03, 0.05])
    assert (tasks["call1"].operation, tasks["call1"].size, tasks["call1"].group) == ("all_reduce", 8e6, (0, 1, 2, 3))
