"""Rankings of the user's: a file with a function that gives each candidate a number."""

import json

import pytest

import commsim as cs
from commsim.placement.place import place_jobs, rank_placements
from commsim.placement.service.posted_cluster import read_posted_cluster

JOB = {"job": "a", "gpus": 8, "iter_time_ms": 100, "phases": [{"offset_ms": 50, "dur_ms": 50, "rate_Gbps": 50}]}
OWN = """
from commsim.placement.candidate import PlacementCandidate
from commsim.placement.cluster import Cluster
from commsim.placement.rankings import placement_ranking

@placement_ranking
def NAME(candidate: PlacementCandidate, cluster: Cluster) -> float:
    hosts = {host for hosts in candidate.placement.values() for host in hosts}
    return VALUE
"""


def written(folder, value):
    (folder / "far.py").write_text(OWN.replace("VALUE", value).replace("NAME", folder.name))
    (folder / "c.toml").write_text(
        '[topology]\nspec = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4"\n[hosts]\ngpus = 4\n'
    )
    (folder / "jobs.json").write_text(json.dumps([JOB]))
    return folder / "c.toml", folder / "jobs.json", "--rank-by", folder / "far.py"


def test_the_candidate_with_the_least_value_comes_first(commsim, tmp_path):
    """Without it the packed candidate on two hosts is the first of all that lose nothing."""
    words = written(tmp_path, "-len(hosts) + len(cluster.network.nodes)")
    usual = commsim.results("place", *words[:2])["candidates"]
    found = commsim.results("place", *words)["candidates"]
    assert len(set(usual[0]["placement"]["a"])) == 2
    assert "own_value" not in usual[0]
    n_hosts = [len(set(one["placement"]["a"])) for one in found]
    assert n_hosts[0] == max(n_hosts) > 2
    assert [one["own_value"] for one in found] == [12 - n for n in n_hosts]
    assert n_hosts == sorted(n_hosts, reverse=True)
    assert "own_value" in commsim("place", *words).out
    ranking = place_jobs(words[0], [JOB], rank_by=cs.OwnFile(words[3]))
    assert [one.own_value for one in ranking.candidates] == [one["own_value"] for one in found]


@pytest.mark.parametrize(
    ("value", "message"),
    [("1 / 0", "far.py, line 9: ZeroDivisionError: division by zero"), ("'few'", "returns a finite number, got 'few'"),
     ("float('nan')", "returns a finite number, got nan"), ("10**400", "returns a finite number, got 10000"),
     ("True", "returns a finite number, got True"), ("None", "returns a finite number, got None"),
     ("cluster.nodes", "no attribute 'nodes'; it has block_sizes, busy,"),
     ("hosts.nodes", "AttributeError: 'set' object has no attribute 'nodes'\n")],
)  # fmt: skip
def test_what_is_wrong_with_a_ranking_is_one_line(commsim, tmp_path, value, message):
    assert message in commsim.refuses("place", *written(tmp_path, value))


def test_numbers_of_numpy_rank(commsim, tmp_path):
    """`np.int64` was no number."""
    found = commsim.results("place", *written(tmp_path, "__import__('numpy').int64(-len(hosts))"))["candidates"]
    assert found[0]["own_value"] == -max(len(set(one["placement"]["a"])) for one in found)


def test_a_file_without_a_ranking_and_an_unknown_name_are_refused(commsim, tmp_path):
    words = written(tmp_path, "1.0")
    (tmp_path / "far.py").write_text("x = 1\n")
    assert "decorate a function with @placement_ranking" in commsim.refuses("place", *words)
    assert "known: stretch, mean, min, weighted, hosts" in commsim.refuses("place", *words[:3], "few")
    with pytest.raises(cs.InputError, match="a data file cannot execute code"):
        place_jobs(words[0], [JOB], rank_by=str(tmp_path / "far.py"))


def test_the_fewest_hosts_come_first():
    """Of two placements that lose nothing, and one that does."""
    jobs = {f"{n}": [JOB | {"placement": [f"h{i % n}" for i in range(8)]}] for n in (4, 2, 8)}
    cluster = {"topology": {"spec": "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4"}, "hosts": {"gpus": 4}}
    ranking = rank_placements(read_posted_cluster(cluster), jobs, rank_by="hosts")
    assert [(one.generator, one.own_value) for one in ranking.candidates] == [("2", 2), ("4", 4), ("8", 8)]
