"""``workload step``, ``kv`` and ``weights`` on the command line; the same step from Python and in a sweep."""

import csv
import dataclasses
import json
import re

import pytest

import commsim as cs
from commsim.core.units import format_time
from commsim.sweep.compute import Bench

STEP = ["workload", "step", "--model", "llama3-8b", "--gpu", "h100", "--tp", 2, "--pp", 2, "--vp", 2]
STEP += ["--global-batch", 16]
KV = ["workload", "kv", "--from", 2, "--to", 4, "--tokens", 128, "--topology", "star:n_hosts=6"]
WEIGHTS = ["workload", "weights", "--from", 1, "--to", 4, "--topology", "star:n_hosts=5"]
FABRIC = "dgx-h100@star:machines=2"


def test_the_command_python_and_a_sweep_give_the_same_step(commsim):
    row = commsim.results(*STEP, "--topology", FABRIC)["results"][0]
    step = cs.training_step("llama3-8b", "h100", FABRIC, tp=2, pp=2, vp=2, global_batch=16, overhead="0us")
    own = {"model": "llama3-8b", "gpu": "h100", "tp": 2, "pp": 2, "vp": 2, "global_batch": 16}
    point = {"topology.name": FABRIC, **{f"workload.{key}": value for key, value in own.items()}}
    swept = Bench({"topology.name": "text"}).row(0, point)
    assert row["step_s"] == step.time == swept["step_s"]
    assert row["exposed_tensor_s"] == step.exposed["tensor"] == swept["exposed_tensor_s"] > 0
    assert row["tokens_per_s_per_gpu"] == pytest.approx(16 * 8192 / step.time / 16)


def test_an_order_of_passes_is_asked_for_at_all_three_doors(commsim):
    """Gpipe holds all 64 micro-batches: without --ignore-memory it is refused, naming the activations."""
    asked = ["workload", "step", "--model", "llama3-8b", "--gpu", "h100", "--tp", 2, "--pp", 4, "--global-batch", 64,
             "--schedule", "gpipe", "--topology", FABRIC]  # fmt: skip
    assert commsim(*asked).code == 2
    assert "activations" in commsim.err
    row = commsim.results(*asked, "--ignore-memory")["results"][0]
    step = cs.training_step("llama3-8b", "h100", FABRIC, tp=2, pp=4, global_batch=64, overhead="0us",
                            schedule="gpipe", ignore_memory=True)  # fmt: skip
    own = {"model": "llama3-8b", "gpu": "h100", "tp": 2, "pp": 4, "global_batch": 64, "schedule": "gpipe"}
    point = {"topology.name": FABRIC, **{f"workload.{key}": value for key, value in own.items()}}
    swept = Bench({"topology.name": "text"}).row(0, point | {"workload.ignore_memory": True})
    assert row["step_s"] == step.time == swept["step_s"]
    assert row["schedule"] == "gpipe"


def test_the_rows_of_a_sweep_are_exported(commsim, tmp_path):
    config, out = tmp_path / "sweep.toml", tmp_path / "rows.csv"
    config.write_text('workload.model = "llama3-8b"\nworkload.gpu = "h100"\nworkload.global_batch = 16\n'
                      f'workload.tp = [1, 2]\ntopology.name = "{FABRIC}"\n')  # fmt: skip
    assert commsim("sweep", "run", config, "-o", tmp_path / "out", "--executor", "serial").code == 0, commsim.err
    assert commsim("sweep", "export", tmp_path / "out", "-o", out).code == 0, commsim.err
    rows = csv.DictReader(out.read_text().splitlines())
    assert [float(row["exposed_tensor_s"]) > 0 for row in rows] == [False, True]


def test_the_answer_names_the_calibrated_row_and_the_network_that_it_assumes(commsim):
    assert commsim(*STEP, "--ranks", 16, "--precision", "fp8", "-v").code == 0, commsim.err
    assert "# dgx-h100@star:machines=2: no topology is given" in commsim.out
    assert "# compute is" in commsim.out
    assert "LLAMA3_8B" in commsim.out


def test_phases_are_those_of_all_gpus_and_of_a_link_out_of_a_machine(commsim, tmp_path):
    """`workload step --phases` was an unrecognized argument, and no other verb had tensor parallelism."""
    path, fabric = tmp_path / "jobs.json", "dgx-h100@star:machines=4"
    assert commsim(*STEP, "--topology", fabric, "--phases", path, "--job", "big", "--phase-gap", "1ms").code == 0
    assert "phases of m0.nic0:switch0, the busiest link out of a machine, period" in commsim.out
    (job,) = cs.read_jobs(path)
    step = cs.training_step("llama3-8b", "h100", fabric, tp=2, pp=2, vp=2, global_batch=16, overhead="0us")
    made = step.job("big", gap="1ms")
    assert (job.name, job.n_gpus, len(job.phases)) == ("big", 32, len(made.phases))
    assert job.is_demand
    placed = dataclasses.replace(job, placement=tuple(f"m{m}.gpu{i}" for m in range(4) for i in range(8)))
    found = cs.rank_placements({"topology": {"spec": fabric}}, {"as recorded": [placed]}).candidates[0]
    assert found.alone["big"] == pytest.approx(step.time)
    assert [(one.groups, one.pattern) for one in job.phases] == [(one.groups, one.pattern) for one in made.phases]
    assert job.n_bytes == pytest.approx(made.n_bytes)
    assert "--job changes nothing without --phases" in commsim.refuses(*STEP, "--topology", fabric, "--job", "big")


def test_what_software_is_slower_than_cables_stays_in_the_iteration(commsim, tmp_path):
    """Bytes were taken out at the software's rate, and took the cable's on the network of `place`."""
    path, fabric = tmp_path / "jobs.json", "dgx-h100@star:machines=4"
    flags = ("--topology", fabric, "--software", "nccl-tcp", "--phases", path, "--job", "big", "--phase-gap", "1ms")
    assert commsim(*STEP, *flags).code == 0, commsim.err
    (job,) = cs.read_jobs(path)
    step = cs.training_step("llama3-8b", "h100", fabric, tp=2, pp=2, vp=2, global_batch=16, software="nccl-tcp")
    placed = dataclasses.replace(job, placement=tuple(f"m{m}.gpu{i}" for m in range(4) for i in range(8)))
    found = cs.rank_placements({"topology": {"spec": fabric}}, {"as recorded": [placed]}).candidates[0]
    assert found.alone["big"] == pytest.approx(step.time)


def test_a_kv_cache_is_divided_as_the_decode_ranks_divide_heads(commsim):
    row = commsim.results(*KV, "--layers", 4, "--kv-heads", 8)["results"][0]
    assert row["size_B"] == 2 * 4 * 8 * 128 * 2 * 128
    assert row["messages"] == 4


def test_the_synthesized_push_is_the_fastest(commsim):
    rows = commsim.results(*WEIGHTS, "--size", "1GB", "--synthesize")["results"]
    assert [row["way"] for row in rows[:2]] == ["chain", "direct"]
    assert rows[2]["bound_s"] <= rows[2]["time_s"] < rows[0]["time_s"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*STEP, "--ranks", 15], "ranks must be a multiple of tp x pp x cp = 4, got 15"),
        ([*STEP], "a step needs a network (topology) or a number of ranks, got neither"),
        (
            [*STEP, "--ranks", 16, "--expose", "all"],
            "expose must name some of tensor, context, pipeline, data, got 'all'",
        ),
        ([*STEP, "--ranks", 16, "--topology", "star:n_hosts=4"], "4"),
        ([*KV], "give --model NAME, or --layers N and --kv-heads N"),
        ([*KV, "--layers", 4, "--kv-heads", 3], "--from must divide the 3 heads"),
        ([*KV, "--model", "llama3-8b", "--layers", 2], "--layers and --model exclude each other"),
        ([*WEIGHTS, "--size", "0B"], "--size must be a whole number of bytes, at least 1"),
        ([*WEIGHTS, "--size", "1GB", "--parts", 3], "--to: 4 ranks must be a multiple of the 3 parts"),
        ([*WEIGHTS], "give --model NAME or --size SIZE, one of them"),
    ],
)
def test_what_does_not_fit_is_one_line(commsim, words, message):
    commsim.refuses(*words)
    assert message in commsim.err


def test_the_answer_begins_with_precision_and_length_and_sums_what_is_exposed(commsim):
    (row,) = commsim.results(*STEP, "--ranks", 16, "-v")["results"]
    (first, *_), said = commsim.out.splitlines(), commsim.out
    assert first.startswith("step ")
    assert first.endswith("of llama3-8b on 16 GPUs, bf16, tp 2, pp 2, batch 16, sequences of 8192")
    assert "# bf16: the default (--precision)" in said
    exposed = row["step_s"] - row["compute_s"] - row["bubble_s"]
    assert re.search(rf"^exposed, all +{format_time(exposed)}, ", said, re.MULTILINE)
    assert re.search(rf"^exposed, data +.*; hidden: {format_time(row['hidden_data_s'])}$", said, re.MULTILINE)
    assert commsim(*STEP, "--ranks", 16, "--precision", "fp8", "-v").code == 0
    assert "the default (--precision)" not in commsim.out


@pytest.mark.parametrize(
    ("model", "tokens", "whose"),
    [("gpt3-175b", 2048, "those of gpt3-175b's pre-training"),
     ("gpt-oss-20b", 8192, "assumed, since those of gpt-oss-20b are unknown")],
)  # fmt: skip
def test_a_sequence_is_the_models_own_where_it_is_known(commsim, model, tokens, whose):
    asked = ["workload", "step", "--model", model, "--gpu", "h100", "--ranks", 8, "--global-batch", 8, "--factor", 1,
             "--ignore-memory"]  # fmt: skip
    (own,) = commsim.results(*asked, "-v")["results"]
    assert f"# sequences of {tokens} tokens: {whose}" in commsim.out
    (same,) = commsim.results(*asked, "--sequence", tokens, "-v")["results"]
    assert own == same
    assert "# sequences of" not in commsim.out
    point = {"topology.name": "dgx-h100", "workload.model": model, "workload.gpu": "h100", "workload.factor": 1.0}
    swept = Bench({"topology.name": "text"}).row(
        0, {**point, "workload.global_batch": 8, "workload.ignore_memory": True}
    )
    assert swept["step_s"] == own["step_s"]


def test_what_is_assumed_of_many_groups_is_one_remark(commsim):
    fabric = "dgx-h100@leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=4,bandwidth=400Gbps"
    said = commsim.results(*STEP[:6], "--tp", 4, "--global-batch", 256, "--topology", fabric, "-v")["remarks"]
    assumed = [one for one in said if one["code"] == "library-assumed" and "NCCL takes a NIC" in one["details"]]
    assert len(assumed) == 1
    assert "4 groups" in assumed[0]["text"]
    assert not any(one["text"].startswith("group ") for one in said)


def test_the_help_says_how_many_ranks_are_data_parallel(commsim):
    assert "ranks / (tp pp cp) are data parallel" in " ".join(commsim("workload", "step", "--help").out.split())


def test_the_json_of_a_step_has_its_flags_and_diff_names_the_networks_and_compares_the_times(commsim, tmp_path):
    files, steps = [tmp_path / "a.json", tmp_path / "b.json"], []
    fail = ("--fail", "link:m0.nic0:switch0")
    for file, fabric, more in zip(files, (FABRIC, f"{FABRIC},bandwidth=200Gbps"), ((), fail), strict=True):
        assert commsim(*STEP, "--topology", fabric, *more, "--json", file).code == 0, commsim.err
        assert ", ".join([fabric, " ".join(more)] if more else [fabric]) in commsim.out
        tree = json.loads(file.read_text())
        assert (tree["config"]["topology"], tree["config"]["tp"]) == (fabric, 2)
        steps.append(tree["results"][0])
    found = commsim.results("diff", *files)
    assert found["differs"]["topology"] == {"a": FABRIC, "b": f"{FABRIC},bandwidth=200Gbps"}
    assert not [name for name in found["differs"] if name.endswith("_s")]
    assert found["results"][0]["time_ratio"] == steps[1]["step_s"] / steps[0]["step_s"] > 1
    assert f"# topology: A {FABRIC}, B {FABRIC},bandwidth=200Gbps" in commsim.out
    assert "exposed data" in commsim.out
    assert "busiest" not in commsim.out
