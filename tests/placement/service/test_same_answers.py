"""The command line, Python and the service give one answer to one question: 30 drawn clusters, field by field."""

import json

import numpy as np
import pytest
from place_service import running

import commsim as cs
from commsim.cli import main
from commsim.placement.cluster import read_cluster
from commsim.placement.scores import ScoreSettings

RANKINGS = ("stretch", "mean", "min", "weighted")


def drawn(seed):
    """Write a cluster and jobs, some of which run, with how to rank them."""
    rng = np.random.default_rng(seed)
    n_leaves, hosts, gpus = int(rng.integers(2, 4)), int(rng.integers(2, 5)), int(rng.integers(1, 3))
    n_spines, oversubscription = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    uplinks = f"oversubscription={oversubscription}"
    if hosts % (oversubscription * n_spines):  # no whole number of cables
        uplinks = f"uplink_bandwidth={50 * hosts / (oversubscription * n_spines)}Gbps"
    cluster = {
        "topology": {
            "spec": f"leaf_spine:n_leaves={n_leaves},n_spines={n_spines},hosts_per_leaf={hosts},"
                    f"bandwidth=50Gbps,{uplinks}",
        },
        "hosts": {"gpus": gpus} | ({"busy": {"h0": 1}} if seed % 3 == 0 else {}),
    }  # fmt: skip
    free = [f"h{i}" for i in range(1, n_leaves * hosts) for _ in range(gpus)]
    jobs = []
    for i in range(int(rng.integers(2, 5))):
        n = int(rng.integers(2, 4))
        if len(free) < n:
            break
        period = float(rng.choice([80.0, 100.0, 117.3, 150.0, 240.0]))
        edges = np.sort(rng.uniform(0, period, 2 * int(rng.integers(1, 3)))).round(3).reshape(-1, 2).tolist()
        phases = [{"offset_ms": a, "dur_ms": round(b - a, 3), "rate_Gbps": float(rng.integers(10, 60))}
                  for a, b in edges if b - a > 0.1]  # fmt: skip
        if rng.random() < 0.3 and phases:
            phases[0]["overlap_ms"] = phases[0]["dur_ms"] / 2
        job = {"job": f"j{i}", "gpus": n, "iter_time_ms": period, "phases": phases}
        kind = rng.integers(4)
        if kind == 0:
            job["placement"] = free[:n]
            job["start_ms"] = round(float(rng.uniform(0, period / 2)), 3)
        elif kind == 1:
            job["placed"] = free[:1]
        free = free[n:]
        jobs.append(job)
    return cluster, jobs


def toml(cluster):
    lines = []
    for name, table in cluster.items():
        lines.append(f"[{name}]")
        lines += [f"{key} = {value_of(value)}" for key, value in table.items()]
    return "\n".join(lines)


def value_of(value):
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {one}" for key, one in value.items()) + " }"
    return json.dumps(value)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(5), pytest.param(range(5, 30), marks=pytest.mark.deep)])
def test_drawn_clusters_have_one_answer_each(tmp_path, seeds):
    for seed in seeds:
        cluster, jobs = drawn(seed)
        network, given, out = (tmp_path / f"{seed}-{name}" for name in ("c.toml", "jobs.json", "out.json"))
        network.write_text(toml(cluster))
        given.write_text(json.dumps(jobs))
        rank_by, loops, check = RANKINGS[seed % 4], ("merged", "literal")[seed % 7 == 0], seed % 5 == 0
        words = ["--candidates", "6", "--seed", seed, "--rank-by", rank_by, "--loops", loops, "--json", out]
        assert main([str(word) for word in ("place", network, given, *words, *(["--check"] if check else []))]) == 0
        by_command = json.loads(out.read_text())
        settings = ScoreSettings(seed=seed)
        ranking = cs.place_jobs(
            str(network), str(given), n=6, rank_by=rank_by, loops=loops, check=check or None, settings=settings,
            costs=True,
        )  # fmt: skip
        by_python = {
            "candidates": [one.row() for one in ranking.candidates],
            "discarded": [one.row() for one in ranking.discarded],
            "notes": [str(one) for one in ranking.remarks],
        }
        asked = {"jobs": jobs, "candidates": 6, "seed": seed, "rank_by": rank_by, "loops": loops, "check": check}
        with running(read_cluster(network)) as service:
            status, by_service = service.ask("POST", "/place", asked)
        assert status == 200, by_service
        period = {job["job"]: job["iter_time_ms"] for job in jobs}
        kinds = {"placement" in job for job in jobs}
        rows = (by_service["candidates"], by_python["candidates"], by_command["candidates"])
        for row, same, told in zip(*rows, strict=True):
            assert ("cost" in told) == (len(kinds) == 2), seed  # the command: where some run and others are new
            assert row["cost"] == told.pop("cost", same["cost"]) == same.pop("cost"), seed
            own = {name: time / period[name] for name, time in row["predicted_iteration_ms"].items()}
            cost = row.pop("cost")["own"]
            assert cost == pytest.approx({name: own[name] for name in cost}, abs=2e-9)  # both are rounded to 1e-9
        for key, value in json.loads(json.dumps(by_python)).items():
            assert by_command[key] == value, (seed, key)
            assert by_service[key] == value, (seed, key)
        assert by_service["schema"] == by_command["schema"]
