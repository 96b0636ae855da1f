import itertools
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.training.task_graph import Task, TaskGraph, read_graph, simulate_graph


def nothing(task):
    raise AssertionError(f"{task.name} was asked for its cost")


def by_size(task):
    return task.size


@st.composite
def graphs(draw):
    """Random graphs with few resources, equal times and priorities, so that there are many ties."""
    chance = random.Random(draw(st.integers(0, 2**32)))
    resources = [f"r{i}" for i in range(draw(st.integers(1, 4)))]
    return TaskGraph(
        tuple(
            Task(
                f"t{i}",
                tuple(chance.sample(resources, chance.randint(0, min(2, len(resources))))),
                duration=float(chance.randint(0, 3)),
                priority=chance.randint(0, 2),
                after=tuple(chance.choices(range(i), k=chance.randint(0, 2))) if i else (),
            )
            for i in range(draw(st.integers(1, 14)))
        )
    )


def slow_play(graph):
    """The rule word by word: at every time, again and again the first task that can start does."""
    n = len(graph.tasks)
    start, end = [None] * n, [None] * n
    now = 0.0
    while True:
        busy = {r for i, t in enumerate(graph.tasks) if start[i] is not None and end[i] > now for r in t.resources}
        done = [end[i] is not None and end[i] <= now for i in range(n)]
        # what starts and ends at once has not ended for this round, as its end is an event of its own
        order = sorted((t.priority, i) for i, t in enumerate(graph.tasks) if start[i] is None)
        for _, i in order:
            task = graph.tasks[i]
            if all(done[j] for j in task.after) and not busy & set(task.resources):
                start[i], end[i] = now, now + task.duration
                busy |= set(task.resources)
        if any(start[i] == end[i] == now and not done[i] for i in range(n)):
            continue
        later = [e for e in end if e is not None and e > now]
        if not later:
            return start, end
        now = min(later)


@given(graph=graphs())
def test_random_graphs_play_as_the_rule_says_word_by_word(graph):
    timeline = simulate_graph(graph, nothing)
    start, end = slow_play(graph)
    assert timeline.start.tolist() == start
    assert timeline.end.tolist() == end


@given(graph=graphs())
def test_resources_are_serial_and_nothing_is_shorter_than_its_longest_chain(graph):
    timeline = simulate_graph(graph, nothing)
    for resource in {r for task in graph.tasks for r in task.resources}:
        spans = sorted(
            (timeline.start[i], timeline.end[i]) for i, t in enumerate(graph.tasks) if resource in t.resources
        )
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))
        assert timeline.busy(resource) == sum(t.duration for t in graph.tasks if resource in t.resources)
    for i, task in enumerate(graph.tasks):
        assert all(timeline.start[i] >= timeline.end[j] for j in task.after)
    assert timeline == simulate_graph(graph, nothing)


def test_of_tasks_that_could_start_the_smallest_priority_and_index_goes_first():
    graph = TaskGraph(
        (
            Task("late", ("gpu0.compute",), 1.0, priority=5),
            Task("urgent", ("gpu0.compute",), 2.0, priority=1),
            Task("urgent too", ("gpu0.compute",), 4.0, priority=1),
        )
    )
    assert simulate_graph(graph, nothing).start.tolist() == [6, 0, 2]


def test_a_task_of_two_resources_waits_for_both_and_holds_neither_meanwhile():
    graph = TaskGraph(
        (
            Task("a", ("x",), 2.0),
            Task("both", ("x", "y"), 1.0),
            Task("b", ("y",), 3.0, priority=1),
        )
    )
    assert simulate_graph(graph, nothing).start.tolist() == [0, 3, 0]


def test_communication_costs_what_the_function_says_and_its_duration():
    graph = TaskGraph(
        (
            Task("backward", ("gpu0.compute",), 1.0),
            Task("all-reduce", ("gpu0.network",), 0.5, "all_reduce", (0, 1), 2.0, after=(0,)),
        )
    )
    timeline = simulate_graph(graph, by_size)
    assert timeline.iteration_time == 3.5
    assert timeline.exposed_communication == 2.5
    assert timeline.rows()[1] == {
        "task": "all-reduce",
        "resources": ["gpu0.network"],
        "start_s": 1.0,
        "end_s": 3.5,
        "operation": "all_reduce",
        "group": [0, 1],
        "size_B": 2.0,
    }


def test_communication_is_hidden_only_by_the_computation_of_the_same_worker():
    send = {"operation": "send", "group": (0, 1)}
    graph = TaskGraph(
        (
            Task("long", ("gpu0.compute",), 10.0),
            Task("short", ("gpu1.compute",), 1.0),
            Task("hidden", ("gpu0.network",), size=4.0, **send),
            Task("half", ("gpu1.network",), size=3.0, **send),
            Task("again", ("gpu1.second_network",), size=2.5, **send),
            Task("shared", ("spine",), size=9.0, **send),
        )
    )
    assert simulate_graph(graph, by_size).exposed_communication == 2.0
    alone = TaskGraph((Task("shared", ("spine",), size=9.0, **send),))
    assert simulate_graph(alone, by_size).exposed_communication == 9.0


def test_a_long_graph_of_one_resource_is_played_in_order():
    tasks = tuple(Task(f"t{i}", ("link",), 1.0, priority=-i) for i in range(3000))
    assert simulate_graph(TaskGraph(tasks), nothing).start.tolist() == list(np.arange(3000.0)[::-1])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"duration": -1.0}, "duration must be 0 or more, got -1.0"),
        ({"duration": float("nan")}, "duration must be 0 or more, got nan"),
        ({"size": float("inf")}, "size must be 0 or more, got inf"),
        ({"resources": ("x", "x")}, "a resource is named twice"),
        ({"operation": "send"}, "send needs a group of different ranks"),
        ({"operation": "send", "group": (1, 1)}, "send needs a group of different ranks"),
    ],
)
def test_a_wrong_task_is_refused(fields, message):
    with pytest.raises(InputError, match=message):
        Task("t", **{"resources": ("x",), **fields})


def test_a_graph_without_tasks_or_with_one_that_waits_for_a_later_one_is_refused():
    with pytest.raises(InputError, match="at least one task"):
        TaskGraph(())
    with pytest.raises(InputError, match=r"task 1, 'b': is after earlier tasks 0\.\.0, got \(1,\)"):
        TaskGraph((Task("a", ()), Task("b", (), after=(1,))))


def test_a_cost_that_is_no_time_is_refused():
    graph = TaskGraph((Task("t", ("x",), operation="send", group=(0, 1)),))
    with pytest.raises(InputError, match="costs must be 0 or more and finite, got nan"):
        simulate_graph(graph, lambda _: float("nan"))


GOOD = """
[[tasks]]
name = "backward"
resources = ["gpu0.compute"]
duration = "12ms"

[[tasks]]
name = "gradients"
resources = ["gpu0.network"]
operation = "all_reduce"
group = [0, 1]
size = "4MB"
priority = 2
after = ["backward"]
"""


def written(folder, text):
    path = folder / "graph.toml"
    path.write_text(text)
    return path


def test_a_description_is_a_graph(tmp_path):
    assert read_graph(written(tmp_path, GOOD)) == TaskGraph(
        (
            Task("backward", ("gpu0.compute",), 0.012),
            Task("gradients", ("gpu0.network",), 0.0, "all_reduce", (0, 1), 4e6, 2, (0,)),
        )
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"12ms"', "12", r"line 5: tasks\[0\]\.duration must be text with a unit"),
        ('"12ms"', '"12MB"', r"tasks\[0\]\.duration must be a time"),
        ('"all_reduce"', '"gossip"', r"tasks\[1\]\.operation must be one of send, all_reduce"),
        ("[0, 1]", "[0, 0]", r"tasks\[1\] is wrong: .* needs a group of different ranks"),
        ("[0, 1]", '["a"]', r"tasks\[1\]\.group\[0\] must be a rank"),
        ('["backward"]', '["forward"]', r"must be the name of an earlier task, got 'forward'"),
        ('["backward"]', '"backward"', r"tasks\[1\]\.after must be a list"),
        ('"gradients"', '"backward"', "must be another name than 'backward'"),
        ("priority", "prio", "prio is not a field here; did you mean priority"),
        (GOOD, "tasks = []", "must hold at least one task"),
        (GOOD, "", "tasks is missing"),
        (GOOD, "[[tasks]", "graph.toml: "),
    ],
)
def test_a_wrong_field_is_named(tmp_path, old, new, message):
    with pytest.raises(InputError, match=message):
        read_graph(written(tmp_path, GOOD.replace(old, new)))


def test_the_name_of_a_table_in_the_other_number_leads_to_the_right_one(tmp_path):
    (tmp_path / "x.toml").write_text('[[task]]\nname = "a"\n')
    with pytest.raises(InputError, match="tasks is missing: a list of a table; task is no field"):
        read_graph(tmp_path / "x.toml")
