import dataclasses
import json
import re
from pathlib import Path

import pytest
from command_words import with_flags

from commsim.placement.place import rank_placements
from commsim.prediction.inputs import load_network
from commsim.training.gpus import known_gpus
from commsim.training.policies import TRAINING_POLICIES
from commsim.training.sharing.periodic import read_jobs
from commsim.training.steps.transformer import known_transformers

TRACES = Path(__file__).resolve().parents[4] / "shared" / "data" / "traces"
GRAPH = """
[[tasks]]
name = "backward"
resources = ["gpu0.compute"]
duration = "10ms"
[[tasks]]
name = "gradients"
resources = ["gpu0.network"]
operation = "all_reduce"
group = [0, 1, 2, 3]
size = "10MB"
after = ["backward"]
"""


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "net.csv"
    path.write_text("tensor,numel,gap_us\nlast,1000000,1000\nmiddle,9000000,2000\nfirst,1000,3000\n")
    return path


@pytest.fixture
def run(commsim, trace):
    return lambda *argv, workers=4: commsim.results("workload", "run", "--trace", trace, "--workers", workers, *argv)


def test_the_contract_stands_at_the_top_and_every_policy_has_a_row(run):
    tree = run("--bandwidth", "10Gbps", "--batch-time", "12ms", "--policy", "ddp", "--policy", "fsdp:unit=1B")
    assert [row["policy"] for row in tree["results"]] == ["ddp", "fsdp:unit=1B"]
    first = tree["results"][0]
    # buckets of 4, 36 and 0.004 MB at 10 Gb/s: 4.8 ms from 1 ms on, then 43.2 ms; the backward pass ends at 6 ms
    assert tree["iteration_s"] == first["iteration_s"] == pytest.approx(0.0058 + 0.0432048 + 0.006)
    assert tree["exposed_comm_s"] == pytest.approx(tree["iteration_s"] - 0.012)
    assert tree["scaling"] == pytest.approx(0.012 / tree["iteration_s"])
    assert first["sent_per_worker_B"] == pytest.approx(1.5 * 40.004e6)
    assert tree["results"][1]["sent_per_worker_B"] == pytest.approx(1.5 * first["sent_per_worker_B"])
    assert [row["size_B"] for row in first["exchanges"]] == [4e6, 36e6, 4e3]


def test_several_policies_are_one_table_and_one_alone_shows_its_exchanges(run, commsim):
    rows = run("--bandwidth", "10Gbps", "--policy", "ddp", "--policy", "wfbp")["results"]
    table = [line.split() for line in commsim.out.splitlines() if not line.startswith("#")]
    assert [(line[0], line[-4], line[-3]) for line in table[1:]] == [
        (row["policy"], f"{100 * row['scaling']:.2f}", str(len(row["exchanges"]))) for row in rows
    ]
    run("--bandwidth", "10Gbps", "--policy", "ddp")
    assert "bucket 0  all_reduce" in commsim.out


@pytest.mark.parametrize("algorithm", ["byteps:n_servers=4", "parameter_server:n_servers=2", "switchml"])
def test_all_workers_work_where_a_collective_has_helpers_and_each_sends_its_gradients_once(run, algorithm):
    (row,) = run("--network", "star:n_hosts=8,bandwidth=10Gbps", "--algorithm", f"all_reduce={algorithm}")["results"]
    assert row["workers"] == 4
    assert row["sent_per_worker_B"] == pytest.approx(40.004e6)


def test_an_algorithm_that_no_exchange_takes_is_told(run, commsim):
    network = ("--network", "star:n_hosts=4,bandwidth=10Gbps", "--algorithm", "all_reduce=double_tree_all_reduce")
    run(*network, "--policy", "zero3", "-v")
    assert "all_reduce=double_tree_all_reduce: no effect in zero3, its exchanges are all_gather, reduce_" in commsim.out
    run(*network, "--policy", "ddp")
    assert "no effect" not in commsim.out


def test_servers_without_a_host_are_refused(commsim, trace):
    argv = ("--network", "star:n_hosts=5", "--algorithm", "all_reduce=byteps:n_servers=4")
    told = commsim.refuses("workload", "run", "--trace", trace, *with_flags(["--workers", 4], argv))
    assert "4 ranks and 4 helpers need 8 hosts" in told


def test_on_a_network_collectives_are_simulated(run, commsim):
    plain = run("--bandwidth", "10Gbps")
    star = run("--network", "star:n_hosts=4,bandwidth=10Gbps,latency=0s", "--overhead", "0us")
    assert star["iteration_s"] == pytest.approx(plain["iteration_s"])
    slow = run("--network", "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=2,bandwidth=10Gbps", "--placement",
               "spread", "--algorithm", "all_reduce=double_tree_all_reduce", "--overhead", "0us")  # fmt: skip
    assert slow["iteration_s"] > star["iteration_s"]


def test_compression_addition_stragglers_and_jitter_change_what_they_should(run, commsim, tmp_path):
    plain = run("--bandwidth", "10Gbps", "-v")["exposed_comm_s"]
    assert "adding gradients is assumed to take no time" in commsim.out
    assert run("--bandwidth", "10Gbps", "--compression", 4)["exposed_comm_s"] < plain / 3
    added = run("--bandwidth", "10Gbps", "--add-rate", "10GB/s")["exposed_comm_s"]
    assert added == pytest.approx(plain + 0.75 * 40.004e6 / 10e9)
    assert "free" not in commsim.out
    table = tmp_path / "add.csv"
    table.write_text("nbytes,seconds\n10,1e-9\n10000000,1e-3\n")
    assert run("--bandwidth", "10Gbps", "--vector-add", table)["exposed_comm_s"] == pytest.approx(added)
    slow = run("--bandwidth", "10Gbps", "--straggler", 3)
    assert slow["scaling"] < run("--bandwidth", "10Gbps")["scaling"]
    drawn = run("--bandwidth", "100Gbps", "--jitter", 0.2, "--iterations", 7, "--seed", 1)
    assert len(drawn["results"][0]["iteration_times_s"]) == 7
    assert drawn == run("--bandwidth", "100Gbps", "--jitter", 0.2, "--iterations", 7, "--seed", 1)


def test_overheads_headers_and_the_optimiser_count(run, commsim):
    plain = run("--bandwidth", "10Gbps", "--policy", "wfbp:overlap=false")
    steps = 2 * 3 * len(plain["results"][0]["exchanges"])
    later = run("--bandwidth", "10Gbps", "--policy", "wfbp:overlap=false", "--overhead", "10us")
    assert later["iteration_s"] - plain["iteration_s"] == pytest.approx(steps * 10e-6)
    framed = run("--bandwidth", "10Gbps", "--policy", "wfbp:overlap=false", "--payload", "1000B", "--header", "100B")
    assert framed["exposed_comm_s"] == pytest.approx(1.1 * plain["exposed_comm_s"], rel=1e-3)
    updated = run("--bandwidth", "10Gbps", "--policy", "wfbp:overlap=false", "--optimizer-time", "5ms")
    assert updated["iteration_s"] - plain["iteration_s"] == pytest.approx(5e-3)
    assert updated["results"][0]["optimizer_s"] == pytest.approx(5e-3)
    assert plain["results"][0]["optimizer_s"] == 0


def test_timeline_and_phases_are_written_and_read_back(run, tmp_path):
    tree = run("--bandwidth", "10Gbps", "--timeline", tmp_path / "t.json", "--phases", tmp_path / "jobs.json",
               "--job", "mine")  # fmt: skip
    (job,) = read_jobs(tmp_path / "jobs.json")
    assert (job.name, job.n_gpus, job.period) == ("mine", 4, tree["iteration_s"])
    assert job.n_bytes == pytest.approx(tree["results"][0]["sent_per_worker_B"])
    assert job.phases[0].rate == pytest.approx(10e9 / 8)
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert "bucket 1" in {event["name"] for event in events}


@pytest.mark.parametrize(
    ("network", "workers", "link", "n_links"),
    [
        ("dgx-h100@star:machines=2", 16, "m0.nic0:switch0", 8),
        ("leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=2,bandwidth=10Gbps,uplink_bandwidth=5Gbps", 4, "h0:leaf0", 1),
    ],
)
def test_phases_are_the_demand_of_a_link_out_of_a_machine(run, commsim, tmp_path, network, workers, link, n_links):
    """They had the bus bandwidth, with NVLink SHARP 2850 Gb/s on NICs of 400."""
    tree = run("--network", network, "--phases", tmp_path / "jobs.json", workers=workers)
    assert f" of {link}, the busiest link out of a machine" in commsim.out
    (job,) = read_jobs(tmp_path / "jobs.json")
    assert job.is_demand
    # all reduce: at least the sum of one machine leaves it, at most what a ring sends
    size = sum(row["size_B"] for row in tree["results"][0]["exchanges"])
    assert size * (1 - 1e-9) <= job.n_bytes <= 2 * size
    seats = load_network(network)
    nodes = tuple(seats.nodes[i] for i in seats.endpoints[:workers])
    placed = dataclasses.replace(job, placement=nodes)
    gpus = {} if n_links > 1 else {"gpus": 1}
    found = rank_placements({"topology": {"spec": network}, "hosts": gpus}, {"recorded": [placed]}).candidates[0]
    assert found.alone[job.name] == pytest.approx(tree["iteration_s"])


def test_a_model_that_is_not_published_is_told_which_are_and_a_wrong_flag_where_help_is(commsim):
    message = commsim.refuses("workload", "run", "--trace", "llama2-7b", "--workers", 4, "--bandwidth", "10Gbps")
    assert "no published model; these are known: " in message
    assert "bert" in message
    message = commsim.refuses(
        "workload", "step", "--model", "llama2-7b", "--gpu", "h100", "--global-batch", 8, "--forward", "1ms"
    )
    assert "(see commsim workload step --help)" in message


def test_an_iteration_may_be_described_task_by_task(commsim, tmp_path):
    path = tmp_path / "iteration.toml"
    path.write_text(GRAPH)
    tree = commsim.results("workload", "run", "--graph", path, "--bandwidth", "8Gbps", "--latency", "1ms",
                           "--phases", tmp_path / "jobs.json")  # fmt: skip
    assert tree["iteration_s"] == pytest.approx(0.01 + 0.015 + 6 * 0.001)
    assert tree["exposed_comm_s"] == pytest.approx(0.021)
    assert [row["task"] for row in tree["results"][0]["tasks"]] == ["backward", "gradients"]
    assert read_jobs(tmp_path / "jobs.json")[0].name == "iteration"
    assert "gpu0.network  busy for 21 ms" in commsim.out


def test_a_graph_is_played_packet_by_packet(commsim, tmp_path):
    path = tmp_path / "iteration.toml"
    path.write_text(GRAPH)
    star = "star:n_hosts=4,bandwidth=8Gbps,latency=1us"
    argv = ("workload", "run", "--graph", path, "--network", star)
    for how in ((), ("--preset", "uec"), ("--transport", "dctcp", "--balancing", "spray")):
        iteration = commsim.results(*argv, "--engine", "packet", *how, "-v")["iteration_s"]
        assert "engine packet, transport" in commsim.out
        options = ("--topology", star, "--engine", "packet", *how, "-b", "10MB", "-e", "10MB")
        (alone,) = commsim.results("run", "--overhead", "0us", "ring_all_reduce", *options, "-v")["results"]
        assert iteration == pytest.approx(0.01 + alone["time_s"], rel=1e-3)
    refused = commsim.refuses(*argv, "--engine", "packet", "--preset", "fast")
    assert "fast" in refused
    assert "--preset goes with --engine packet" in commsim.refuses(*argv, "--preset", "uec")
    assert "--network SPEC" in commsim.refuses(*argv[:4], "--bandwidth", "8Gbps", "--engine", "packet")
    graphless = ("--trace", "x.csv", "--workers", "4", "--network", "star:n_hosts=4", "--engine", "packet")
    assert "--graph FILE.toml" in commsim.refuses("workload", "run", *graphless)


def test_models_and_accelerators_are_listed_and_an_unknown_one_names_those_like_it(commsim):
    """All 45 names, and all 16, stood in the one line of the error."""
    rows = commsim.results("workload", "models")["results"]
    assert {row["model"] for row in rows if "model" in row} == set(known_transformers())
    assert {row["gpu"] for row in rows if "gpu" in row} == set(known_gpus())
    assert "llama3-70b: 70.55 billion parameters" in commsim.out
    words = ("workload", "step", "--ranks", "8", "--global-batch", "8")
    said = commsim.refuses(*words, "--model", "llama-70b", "--gpu", "h100")
    assert f"-70b? {len(known_transformers())} are known (commsim workload models)" in said
    assert {"llama2-70b", "llama3-70b"} < set(re.split(r"[ ?]", said))
    assert "did you mean h100? " in commsim.refuses(*words, "--model", "llama3-70b", "--gpu", "h1000")


def test_the_policies_are_listed(commsim):
    rows = commsim.results("workload", "policies")["results"]
    assert [row["policy"] for row in rows] == list(TRAINING_POLICIES)
    assert "horovod:cycle,fusion,negotiation" in commsim.out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ((), "--bandwidth RATE or --network SPEC"),
        (("--bandwidth", "10Gbps", "--network", "star:n_hosts=4"), "one of them"),
        (("--bandwidth", "10"), "--bandwidth needs a unit"),
        (("--bandwidth", "0Gbps"), "--bandwidth must be positive"),
        (("--bandwidth", "10Gbps", "--policy", "ddq"), "unknown training policy 'ddq'"),
        (("--bandwidth", "10Gbps", "--batch-time", "1ms"), "the backward pass takes 0.006 s"),
        (("--bandwidth", "10Gbps", "--compression", "0"), "compression must be 1 or more"),
        (("--bandwidth", "10Gbps", "--vector-add", "gone.csv"), "gone.csv: No such file"),
        (("--bandwidth", "10Gbps", "--vector-add", "gone.csv", "--add-rate", "1GB/s"), "exclude each other"),
        (("--bandwidth", "10Gbps", "--iterations", "5"), "--iterations goes with --jitter"),
        (("--bandwidth", "10Gbps", "--jitter", "0.1", "--iterations", "0"), "iterations must be at least 1"),
        (("--bandwidth", "10Gbps", "--jitter", "0.1", "--iterations", "999999999"), "are more than 10000000 draws"),
        (("--bandwidth", "10Gbps", "--policy", "ddp:no_sync=999999999"), "and at most 10000"),
        (("--bandwidth", "10Gbps", "--policy", "p3:partition=1B"), "are more than 1000000 messages"),
        (("--bandwidth", "10Gbps", "--workers", "999999999"), "workers must be at least 1 and at most"),
        (("--bandwidth", "10Gbps", "--straggler", "-1"), "slow-downs are positive"),
        (("--bandwidth", "10Gbps", "--value-bytes", "0"), "--value-bytes must be at least 1"),
        (("--bandwidth", "10Gbps", "--placement", "packed"), "--placement goes with --network"),
        (("--bandwidth", "10Gbps", "--optimizer-time", "-1s"), "--optimizer-time"),
        (("--bandwidth", "10Gbps", "--phase-gap", "1ms"), "changes nothing without --phases"),
        (("--network", "star:n_hosts=2"), "ranks must be 1..2"),
        (("--network", "star:n_hosts=4", "--latency", "1us"), "--latency goes with --bandwidth"),
        (("--network", "star:n_hosts=4", "--algorithm", "all_reduce"), "--algorithm must be OPERATION=NAME"),
        (("--bandwidth", "10Gbps", "--graph", "x.toml"), "one of them"),
    ],
)
def test_what_makes_no_sense_is_refused(commsim, trace, argv, message):
    assert message in commsim.refuses("workload", "run", "--trace", trace, *with_flags(["--workers", 4], argv))


def test_a_trace_needs_workers_and_a_graph_has_its_own(commsim, trace, tmp_path):
    path = tmp_path / "iteration.toml"
    path.write_text(GRAPH)
    assert "--workers N" in commsim.refuses("workload", "run", "--trace", trace, "--bandwidth", "1Gbps")
    assert "workers must be at least 1" in commsim.refuses(
        "workload", "run", "--trace", trace, "--bandwidth", "1Gbps", "--workers", 0
    )
    for flag, value in (("--policy", "ddp"), ("--workers", "3"), ("--jitter", "0.1")):
        refused = commsim.refuses("workload", "run", "--graph", path, "--bandwidth", "1Gbps", flag, value)
        assert f"{flag} goes with --trace, not with --graph" in refused
    assert "--trace FILE.csv" in commsim.refuses("workload", "run", "--bandwidth", "1Gbps")


if TRACES.is_dir():  # beside a checkout only where the team works; a test that is not there skips nothing

    def test_the_what_if_of_the_paper_is_one_command(commsim):
        tree = commsim.results(
            "workload", "run", "--trace", TRACES / "netai20_vgg16.csv", "--workers", 64, "--bandwidth", "10Gbps",
            "--policy", "netai20", "--batch-time", "0.19452s", "--compression", 5,
            "--vector-add", TRACES / "netai20_vector_add.csv",
        )  # fmt: skip
        assert tree["scaling"] == pytest.approx(0.723, abs=0.005)


STAR = ("--network", "star:n_hosts=8,bandwidth=1Gbps")
SPARSE = (*STAR, "--algorithm", "all_reduce=omnireduce:n_aggregators=4")


def test_densities_come_from_the_flag_or_from_a_column_of_the_trace(commsim, run, tmp_path):
    flag = run(*SPARSE, "--density", "1,0.01,0.01")
    columned = tmp_path / "dense.csv"
    columned.write_text("numel,gap_us,density\n1000000,1000,1\n9000000,2000,0.01\n1000,3000,0.01\n")
    column = commsim.results("workload", "run", "--trace", columned, "--workers", 4, *SPARSE)
    assert column["iteration_s"] == flag["iteration_s"] < run(*SPARSE)["iteration_s"]
    assert run(*SPARSE, "--density", "0.5")["iteration_s"] > flag["iteration_s"]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ((*SPARSE, "--density", "0.1,0.2"), "densities are one for all tensors or one for each of 3, got 2"),
        ((*SPARSE, "--density", "1.5"), "a density is 0..1, got 1.5"),
        ((*SPARSE, "--density", "few"), "--density must be a share such as 1% or 0.01, got 'few'"),
        ((*STAR, "--density", "0.1"), "--density goes with a sparse collective"),
        (("--bandwidth", "1Gbps", "--density", "0.1"), "--density goes with a sparse collective"),
    ],
)
def test_densities_that_make_no_sense_are_one_line(commsim, trace, argv, message):
    assert message in commsim.refuses("workload", "run", "--trace", trace, "--workers", 4, *argv)


def test_compressed_gradients_are_gathered_as_lists_or_summed(commsim, run, trace):
    gather = ("--algorithm", "all_reduce=ring_all_gather")
    top = run(*STAR, *gather, "--compressor", "top_k:density=0.01")
    # of each value of 4 bytes that is kept an index too, from each of 3 others
    assert top["results"][0]["sent_per_worker_B"] == pytest.approx(3 * 2 * 0.01 * 40.004e6, rel=1e-3)
    assert top["iteration_s"] < run(*STAR)["iteration_s"]
    assert run(*STAR, "--compressor", "power_sgd")["iteration_s"] < run(*STAR)["iteration_s"]
    words = ("workload", "run", "--trace", trace, "--workers", 4, "--compressor", "top_k:density=0.01")
    assert "use an all-gather, such as ring_all_gather" in commsim.refuses(*words, *STAR)
    assert "--compressor goes with --network" in commsim.refuses(*words, "--bandwidth", "1Gbps")
    sparse = (*STAR, "--algorithm", "all_reduce=agsparse:density=0.1")
    assert "sparse data already" in commsim.refuses(*words, *sparse)
