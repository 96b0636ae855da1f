"""Pods of a placement: valid for kubectl, on the hosts of the placement and with its GPUs."""

import json
import shutil
import subprocess

import pytest

yaml = pytest.importorskip("yaml")

CLUSTER = '[topology]\nspec = "dgx-h100@leaf_spine:n_leaves=2,n_spines=2,machines=4"\n[hosts]\n'


@pytest.fixture
def placed(commsim, tmp_path):
    (tmp_path / "cluster.toml").write_text(CLUSTER)
    jobs = [{"job": name, "gpus": gpus, "iter_time_ms": 100, "phases": []} for name, gpus in (("Big_a", 16), ("b", 10))]
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    call = ("place", tmp_path / "cluster.toml", tmp_path / "jobs.json", "--candidates", 1, "--generator", "packed")
    assert commsim(*call, "--json", tmp_path / "placed.json").code == 0, commsim.err
    return tmp_path / "cluster.toml", tmp_path / "placed.json"


def exported(commsim, placed, *words, to="pods"):
    assert commsim("place", "export", placed[0], "--to", to, "--placements", placed[1], *words).code == 0, commsim.err
    return commsim.out


def test_each_host_of_a_job_has_a_pod_with_its_gpus(commsim, placed):
    pods = list(yaml.safe_load_all(exported(commsim, placed)))
    found = {}
    for pod in pods:
        affinity = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        (rule,) = affinity["nodeSelectorTerms"][0]["matchExpressions"]
        assert (rule["key"], rule["operator"]) == ("kubernetes.io/hostname", "In")
        (container,) = pod["spec"]["containers"]
        job, name = pod["metadata"]["annotations"]["commsim/job"], pod["metadata"]["name"]
        found[name] = (job, rule["values"], container["resources"]["limits"]["nvidia.com/gpu"])
    assert found == {"big-a-0": ("Big_a", ["m0"], 8), "big-a-1": ("Big_a", ["m1"], 8),
                     "b-0": ("b", ["m2"], 8), "b-1": ("b", ["m3"], 2)}  # fmt: skip
    assert len(list(yaml.safe_load_all(exported(commsim, placed, "--job", "b")))) == 2


@pytest.mark.parametrize(("to", "who"), [("pods", "Kubernetes"), ("nodelist", "Slurm")])
def test_gpus_that_are_lost_are_named(commsim, placed, to, who):
    """Which GPUs of a machine that is taken in part was lost silently."""
    exported(commsim, placed, "--job", "b", to=to)
    assert f"{who} chooses the GPUs of m3: which of them job b has is lost" in commsim.err
    exported(commsim, placed, "--job", "Big_a", to=to)
    assert "chooses the GPUs" not in commsim.err


def test_a_file_that_was_written_is_said(commsim, placed, tmp_path):
    assert exported(commsim, placed, "-o", tmp_path / "pods.yaml").strip() == f"{tmp_path / 'pods.yaml'}: written"


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_reads_every_field_of_a_pod(commsim, placed):
    """`--local` decodes objects by the types of Kubernetes, without a cluster; what these lack is left out."""
    text = exported(commsim, placed)
    words = ["kubectl", "set", "image", "--local", "-f", "-", "worker=other", "-o", "json"]
    done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=60, check=True)
    decoder, rest, read = json.JSONDecoder(), done.stdout.strip(), []
    while rest:
        one, end = decoder.raw_decode(rest)
        read += one["items"] if one["kind"] == "List" else [one]
        rest = rest[end:].strip()
    for pod, got in zip(yaml.safe_load_all(text), read, strict=True):
        container, its = pod["spec"]["containers"][0], got["spec"]["containers"][0]
        assert its == container | {"image": "other", "resources": {
            "limits": {key: str(n) for key, n in container["resources"]["limits"].items()}}}  # fmt: skip
        assert {key: got["spec"][key] for key in pod["spec"]} | {"containers": []} == pod["spec"] | {"containers": []}
        assert {key: got["metadata"][key] for key in pod["metadata"]} == pod["metadata"]


def test_start_times_are_annotations_and_for_slurm_a_remark(commsim, placed, tmp_path):
    """What `place` chose beside the hosts was lost without a word."""
    tree = json.loads(placed[1].read_text())
    tree["candidates"][0]["shifts_ms"] = {"Big_a": 0, "b": 12.5}
    placed[1].write_text(json.dumps(tree))
    pods = list(yaml.safe_load_all(exported(commsim, placed)))
    notes = [pod["metadata"]["annotations"] for pod in pods]
    assert [one["commsim/start-ms"] for one in notes] == ["0", "0", "12.5", "12.5"]
    exported(commsim, placed, "--job", "b", to="nodelist")
    assert "# start times are left out, Slurm has no option for them: b 12.5 ms" in commsim.err
    exported(commsim, placed, "--job", "Big_a", to="nodelist")
    assert "start times" not in commsim.err
    (tmp_path / "moves.json").write_text(json.dumps({"moves": []}))
    call = ("place", "export", placed[0], "--to", "pods", "--placements", tmp_path / "moves.json")
    assert "is of `commsim place moves`" in commsim.refuses(*call)
