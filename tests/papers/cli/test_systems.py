"""The one door to the published training systems."""

import json

import pytest

from commsim.papers.systems import SYSTEMS

EXPECTED = {
    "ad_psgd": {},
    "bytescheduler": {},
    "check_n_run": {"float32_B": 1e6 * 64 * 4},
    "cross_mesh": {"pieces": 4, "moved_B": 1024 * 1024 * 512 * 4},
    "datastates": {"synchronous_stall_s": 5.0},
    "dlrm": {"tables_of_a_rank": 4, "all_to_all_B": 2 * 4 * 16384 * 128 * 4},
    "gemini": {"recovery_probability": 1 - 8 / 120, "recovery_bound": 1 - 8 / 120, "checkpoint_iterations": 1},
    "hetpipe": {"mini_batches_per_s": 40 / 3, "time_s": 24.0},
    "kungfu": {"messages": 14},
    "lina": {"one_each_busiest": 16 / sum(k**-0.5 for k in range(1, 17))},
    "local_sgd": {"all_reduce_s": 30 * 5e-6 + 1.875 * 100e6 / 1.25e9},
    "megatron": {"exchanges": 96, "iteration_s": 24 * 9e-3 + 96 * (14 * 5e-6 + 1.75 * 32e6 / 300e9)},
    "oobleck": {},
    "optimus_cc": {"embedding_volume": 2.5, "embedding_volume_fused": 1.75},
    "pipedream": {"mini_batch_s": 0.0078},
    "varuna": {"depth": 12, "width": 3, "left_out": 0},
    "zero_offload": {"to_host_B": 2e10, "to_gpu_B": 2e10},
}


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", list(SYSTEMS))
def test_every_system_is_listed_described_and_run(commsim, name):
    assert name in commsim("workload", "systems").out
    assert "--" in commsim("workload", "systems", name, "--help").out
    row = commsim.results("workload", "systems", name)["results"][0]
    # lina draws batches: the mean of 100 is within three standard errors, 0.6 % each, of the expectation
    rel = 0.02 if name == "lina" else None
    assert {key: row[key] for key in EXPECTED[name]} == pytest.approx(EXPECTED[name], rel=rel)


def test_parameters_have_units_and_lists(commsim):
    words = "workload systems pipedream --compute-ms 10x10.5 --weights-mb=0.1x0.1 --outputs-mb 5x5 --n-machines 2"
    row = commsim.results(*words.split(), "--bandwidth", "100GB/s")["results"][0]
    assert row["stages"] == [{"first_layer": 0, "last_layer": 1, "replicas": 2, "time_s": pytest.approx(10.252e-3)}]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("gemeni",), "unknown training system 'gemeni'; did you mean gemini"),
        (("gemini", "--size", "10"), "gemini: size needs a unit"),
        (("gemini", "--n-machines", "999999999999"), "gemini: n_machines is at most 1048576, got 999999999999"),
        (("lina", "--seed", "-1"), "lina: a seed is 0 or more, got -1"),
        (("zero_offload", "--hidden", "0"), "hidden must be at least 1, got 0"),
        (("gemini", "--sise", "1GB"), "has no parameter 'sise'; did you mean size"),
        (("gemini", "--size"), "--size needs a value"),
        (("gemini", "size"), "expected --key value"),
        (("oobleck", "--n-nodes", "1000"), "at most 48 nodes"),
    ],
)
def test_what_makes_no_sense_is_refused(commsim, words, message):
    assert message in commsim.refuses("workload", "systems", *words)


def test_oobleck_recovers_on_the_nodes_that_are_left(commsim):
    row = commsim.results("workload", "systems", "oobleck")["results"][0]
    assert row["templates"] == [3, 4, 5, 6, 7]
    assert [failure["pipelines"] for failure in row["failures"]] == ["3+3+3+4", "3+3+3+3", "3+4+4"]


def test_where_answers_go_may_stand_among_the_parameters(commsim, tmp_path):
    answer = json.loads(commsim("workload", "systems", "oobleck", "--n-nodes", "13", "--json", "-").out)
    assert answer["config"]["n_nodes"] == "13"
    assert answer["results"] == commsim.results("workload", "systems", "oobleck", "--n-nodes=13")["results"]
    assert commsim("workload", "systems", "oobleck", "--csv", tmp_path / "o.csv").code == 0
    assert (tmp_path / "o.csv").read_text().startswith("system,")
