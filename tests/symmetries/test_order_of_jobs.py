"""The order of jobs in a file is no input."""

import itertools
import json

import pytest

from commsim.cli import main

NETWORK = "leaf_spine:n_leaves=4,hosts_per_leaf=4,n_spines=2"
SLOTS = "leaf_spine:n_leaves=2,hosts_per_leaf=8,n_spines=2"
NAMED = (
    'name = "halving"\ncollective = "halving_doubling_all_reduce"\nranks = [0, 4, 8, 12]\nsize = "1MiB"\n',
    'name = "ring"\ncollective = "ring_all_reduce"\nranks = [1, 5, 9, 13]\nsize = "1MiB"\n',
    'name = "pairs"\ncollective = "pairwise_all_to_all"\nranks = [2, 6, 10]\nsize = "512KiB"\nstart = "10us"\n',
)
UNNAMED = tuple(text[text.index("collective") :] for text in NAMED)
IN_SWITCHES = (
    'name = "a"\ncollective = "atp"\nranks = [0, 1, 8]\nsize = "64KiB"\n',
    'name = "b"\ncollective = "atp"\nranks = [2, 3, 9]\nsize = "128KiB"\n',
    'name = "c"\ncollective = "ring_all_reduce"\nranks = [4, 10, 5]\nsize = "128KiB"\n',
)


def times(jobs, network, engine, folder, capsys):
    path = folder / "jobs.toml"
    path.write_text("".join(f"[[job]]\n{job}" for job in jobs))
    assert main(["run", "--topology", network, "--jobs", str(path), "--engine", engine, "-J", "-"]) == 0
    rows = json.loads(capsys.readouterr().out)["results"]
    return [(row["time_s"], row["slowdown"]) for row in rows]


@pytest.mark.sample(3)
@pytest.mark.parametrize("engine", ["flow", "packet"])
@pytest.mark.parametrize(("jobs", "network"), [(NAMED, NETWORK), (UNNAMED, NETWORK), (IN_SWITCHES, SLOTS)])
def test_times_and_slowdowns_are_the_same_in_every_order(jobs, network, engine, tmp_path, capsys):
    first = times(jobs, network, engine, tmp_path, capsys)
    assert len(set(first)) == len(jobs)
    for order in itertools.permutations(range(len(jobs))):
        found = times([jobs[i] for i in order], network, engine, tmp_path, capsys)
        assert found == [first[i] for i in order]


def test_a_new_job_leaves_the_paths_of_the_others_alone(tmp_path, capsys):
    """The first two share nothing with a job that starts after them."""
    late = 'name = "a"\ncollective = "ring_all_reduce"\nranks = [3, 7]\nsize = "1KiB"\nstart = "1s"\n'
    assert times([late, *NAMED[:2]], NETWORK, "flow", tmp_path, capsys)[1:] == times(
        NAMED[:2], NETWORK, "flow", tmp_path, capsys
    )
