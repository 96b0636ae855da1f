"""Jobs for Kueue name the level of the network that their placement stays within."""

import json

import pytest
import yaml

from commsim.cli import main
from commsim.core.errors import InputError
from commsim.placement.schedulers.fabric_tree import Switch, SwitchTree
from commsim.placement.schedulers.kueue_jobs import level_of, write_kueue_jobs

TREE = SwitchTree(
    (
        Switch("leaf0", nodes=("n0", "n1")), Switch("leaf1", nodes=("n2", "n3")), Switch("leaf2", nodes=("n4",)),
        Switch("spine0", ("leaf0", "leaf1")), Switch("spine1", ("leaf2",)), Switch("core", ("spine0", "spine1")),
    )
)  # fmt: skip
FOREST = SwitchTree((Switch("a", nodes=("n0",)), Switch("b", nodes=("n1",))))


def test_the_level_is_the_smallest_that_holds_the_job():
    levels = [level_of(TREE, hosts) for hosts in (("n0", "n0"), ("n0", "n1"), ("n0", "n3"), ("n0", "n4"))]
    assert levels == ["kubernetes.io/hostname", *(f"fabric.topograph.run/tier-{tier}" for tier in range(3))]
    assert level_of(FOREST, ("n0", "n1")) is None


def test_a_job_requires_its_level_or_prefers_it():
    placed = {"Train_A": ["n0", "n0", "n3", "n3"]}
    for wanted in ("required", "preferred"):
        (job,) = yaml.safe_load_all(write_kueue_jobs(TREE, placed, wanted))
        assert (job["apiVersion"], job["kind"], job["metadata"]["name"]) == ("batch/v1", "Job", "train-a")
        assert job["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "user-queue"}
        spec = job["spec"]
        assert (spec["suspend"], spec["parallelism"], spec["completions"]) == (True, 2, 2)
        annotations = spec["template"]["metadata"]["annotations"]
        assert annotations[f"kueue.x-k8s.io/podset-{wanted}-topology"] == "fabric.topograph.run/tier-1"
        assert spec["template"]["spec"]["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": 2}}
    (job,) = yaml.safe_load_all(write_kueue_jobs(FOREST, {"a": ["n0", "n1"]}))
    annotations = job["spec"]["template"]["metadata"]["annotations"]
    assert annotations["kueue.x-k8s.io/podset-preferred-topology"] == "fabric.topograph.run/tier-0"


def test_levels_are_the_labels_of_the_nodes(commsim, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    above = {"n0": "r0", "n1": "r0", "n2": "r1", "n3": "r1"}
    items = [
        {
            "metadata": {"name": name, "labels": {"example.com/rack": rack, "example.com/hall": "hall"}},
            "status": {"allocatable": {"nvidia.com/gpu": "4"}},
        }
        for name, rack in above.items()
    ]
    (tmp_path / "nodes.json").write_text(json.dumps({"items": items}))
    given = ("--labels", "example.com/rack,example.com/hall", "--tier-bandwidth", "1=100Gbps,2=2:1", "-o", "c.toml")
    assert commsim("place", "import", "nodes.json", "--from", "kube-nodes", *given).code == 0, commsim.err
    placement = {"small": ["n2", "n3"], "large": [*above]}
    (tmp_path / "placed.json").write_text(json.dumps({"candidates": [{"placement": placement}]}))
    export = ("place", "export", "c.toml", "--to")
    assert commsim(*export, "kueue-jobs", "--placements", "placed.json").code == 0, commsim.err
    required = [job["spec"]["template"]["metadata"]["annotations"] for job in yaml.safe_load_all(commsim.out)]
    assert [one["kueue.x-k8s.io/podset-required-topology"] for one in required] == [
        "example.com/rack", "example.com/hall",
    ]  # fmt: skip
    assert commsim(*export, "kueue").code == 0, commsim.err
    levels = yaml.safe_load(commsim.out)["spec"]["levels"]
    assert [level["nodeLabel"] for level in levels[:2]] == ["example.com/hall", "example.com/rack"]
    assert "kubectl label" not in commsim.out


def test_more_tiers_than_labels_are_refused():
    with pytest.raises(InputError, match="3 tiers of switches need as many labels, and there are rack, hall"):
        level_of(TREE, ("n0", "n1"), ("rack", "hall"))


def test_what_a_job_of_kubernetes_cannot_be_is_refused():
    with pytest.raises(InputError, match="job a has 1 to 2 GPUs on its hosts"):
        write_kueue_jobs(TREE, {"a": ["n0", "n0", "n1"]})
    with pytest.raises(InputError, match="are both 'a-b'"):
        write_kueue_jobs(TREE, {"a_b": ["n0"], "a-b": ["n1"]})


def test_the_verb_writes_what_place_found(tmp_path):
    (tmp_path / "c.toml").write_text(
        '[topology]\nspec = "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=2"\n[hosts]\ngpus = 4\n'
    )
    phases = [{"offset_ms": 0, "dur_ms": 10, "rate_Gbps": 40}]
    jobs = [{"job": "a", "gpus": 8, "iter_time_ms": 100, "phases": phases}]
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    words = [str(tmp_path / name) for name in ("c.toml", "jobs.json", "placed.json", "out.yaml")]
    assert main(["place", words[0], words[1], "--json", words[2]]) == 0
    export = ["place", "export", words[0], "--to", "kueue-jobs", "--placements", words[2], "-o", words[3]]
    assert main(export) == 0
    (job,) = yaml.safe_load_all((tmp_path / "out.yaml").read_text())
    assert "kueue.x-k8s.io/podset-required-topology" in job["spec"]["template"]["metadata"]["annotations"]
    assert main([*export, "--hostfile", words[3]]) == 2
