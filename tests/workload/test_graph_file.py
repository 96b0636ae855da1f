import pytest

from commsim.core.errors import InputError
from commsim.workload.graph_file import read_graph
from commsim.workload.task_graph import Graph, Task

pytestmark = pytest.mark.nojit
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
    assert read_graph(written(tmp_path, GOOD)) == Graph(
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
