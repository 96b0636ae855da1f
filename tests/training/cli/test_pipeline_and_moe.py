import json

import pytest
from command_words import with_flags

from commsim.training.parallel.pipeline_orders import ORDERS
from commsim.training.sharing.periodic import read_jobs

STAGES = ["workload", "pipeline", "--stages", 8, "--micro-batches", 32, "--forward", "10ms"]
MS_BACK = [*STAGES, "--backward", "1ms"]
MOE = ["workload", "moe", "--layers", 12, "--ranks", 16, "--attention", "2ms", "--expert", "3ms", "--tokens", "64MB"]
MOE += ["--gradients", "200MB"]
RESHARD = ["workload", "reshard", "--size", "1GiB", "--receivers", 4]


def test_without_messages_every_schedule_has_the_bubble_of_its_formula(commsim):
    schedules = [flag for name in ("gpipe", "1f1b", "interleaved", "chimera") for flag in ("--schedule", name)]
    rows = commsim.results(*STAGES, "--backward", "10ms", *schedules)["results"]
    assert [row["schedule"] for row in rows] == ["gpipe", "1f1b", "interleaved", "chimera"]
    for row in rows:
        assert row["bubble"] == pytest.approx(row["bubble_formula"], rel=1e-9)
        assert row["exposed_comm_s"] == 0
    assert rows[3]["bubble_formula"] == 6 / 70
    assert rows[3]["weight_copies"] == 2


def test_where_a_formula_does_not_hold_the_table_says_so(commsim):
    flags = ["--schedule", "1f1b", "--schedule", "chimera"]
    assert commsim(*STAGES, "--backward", "10ms", *flags).code == 0, commsim.err
    assert "formula of" not in commsim.out
    assert commsim(*STAGES, "--backward", "20ms", *flags).code == 0, commsim.err
    assert "# the formula of chimera holds when both passes take the same time" in commsim.out
    assert "# the formula of 1f1b" not in commsim.out


def test_messages_and_gradients_cost_what_the_bandwidth_makes_them_cost(commsim):
    flags = ["--backward", "20ms", "--activation", "64MiB", "--bandwidth", "100Gbps", "--schedule", "gpipe"]
    row = commsim.results(*STAGES, *flags)["results"][0]
    message = 64 * 2**20 / 12.5e9
    assert row["iteration_s"] == pytest.approx(39 * 30e-3 + 2 * 7 * message)
    more = commsim.results(*STAGES, *flags, "--weights", "1GB", "--data-parallel", 4)["results"][0]
    assert more["iteration_s"] == pytest.approx(row["iteration_s"] + 1.5e9 / 12.5e9)


def test_a_network_and_a_timeline(commsim):
    path = commsim.folder / "timeline.json"
    flags = ["--backward", "20ms", "--activation", "1MiB", "--network", "star:n_hosts=8,bandwidth=100Gbps,latency=0s"]
    row = commsim.results(*STAGES, *flags, "--timeline", path)["results"][0]
    assert row["iteration_s"] > 39 * 30e-3
    assert len(json.loads(path.read_text())["traceEvents"]) >= 2 * 8 * 32


def test_lina_is_the_fastest_and_all_policies_send_for_as_long(commsim):
    rows = commsim.results(*MOE, "--bandwidth", "100Gbps")["results"]
    assert [row["policy"] for row in rows] == ["fifo", "priority", "lina"]
    assert rows[2]["iteration_s"] < rows[1]["iteration_s"] < rows[0]["iteration_s"]
    for row in rows:
        assert row["all_to_all_s"] == pytest.approx(12 * 4 * 64e6 * 15 / 16 / 12.5e9)
        assert row["compute_s"] == pytest.approx(12 * 3 * 5e-3)
        assert row["shared_slow_down"] == 2
    assert "up to 2.00 times as long" in commsim.out


def test_one_gpu_sends_nothing(commsim):
    row = commsim.results(*with_flags(MOE, ["--ranks", 1]), "--policy", "lina")["results"][0]
    assert (row["exposed_comm_s"], row["iteration_s"]) == (0, pytest.approx(0.18))


def test_the_closed_forms_are_what_the_simulation_gives(commsim):
    flags = ["--bandwidth", "10Gbps", "--network", "star:n_hosts=5,bandwidth=10Gbps,latency=0s", "--overhead", "0us"]
    rows = {row["strategy"]: row for row in commsim.results(*RESHARD, *flags)["results"]}
    once = 2**30 / 1.25e9
    assert rows["send_recv"]["flow_s"] == pytest.approx(4 * once)
    assert rows["broadcast"]["flow_s"] == pytest.approx(once * (1 + 3 / 64))
    for row in rows.values():
        assert row["flow_s"] == pytest.approx(row["closed_form_s"], rel=1e-9)


def test_a_local_network_gathers_faster(commsim):
    rows = commsim.results(*RESHARD, "--bandwidth", "10Gbps", "--local-bandwidth", "400Gbps")["results"]
    assert rows[1]["closed_form_s"] == pytest.approx(2**30 / 1.25e9 * (1 + 0.75 / 40))
    assert rows[1]["flow_s"] is None


@pytest.mark.parametrize(
    ("words", "flags", "message"),
    [
        (STAGES, ("--backward", "10"), "--backward needs a unit"),
        (MS_BACK, ("--schedule", "dapple"), "unknown --schedule 'dapple'; known: gpipe, 1f1b"),
        (MS_BACK, ("--activation", "1MB"), "give what communication costs, --bandwidth RATE or --network"),
        (MS_BACK, ("--chunks", 3), "--chunks goes with --schedule interleaved"),
        (MS_BACK, ("--placement", "spread"), "--placement goes with --network"),
        (MS_BACK, ("--bandwidth", "1Gbps", "--network", "star"), "both set the cost of communication"),
        (MS_BACK, ("--latency", "1us", "--network", "star:n_hosts=8"), "--latency goes with --bandwidth"),
        (MS_BACK, ("--data-parallel", 0), "data parallel must be at least 1"),
        (MS_BACK, ("--stages", 7, "--schedule", "chimera"), "even number of workers"),
        (STAGES, ("--backward", "0s", "--forward", "0s"), "must not both be 0"),
        (MOE, (), "give what communication costs, --bandwidth RATE or --network SPEC"),
        (MOE, ("--policy", "tutel"), "unknown --policy 'tutel'; known: fifo, priority, lina"),
        (MOE, ("--bandwidth", "1Gbps", "--micro-op", "1B"), "at most 50000 pieces"),
        (MOE, ("--bandwidth", "1Gbps", "--policy", "fifo", "--micro-op", "1MB"), "--micro-op goes with --policy lina"),
        (MOE, ("--bandwidth", "1Gbps", "--layers", 0), "layers and ranks must be at least 1"),
        (RESHARD, (), "give --bandwidth RATE for the closed forms, --network SPEC to simulate, or both"),
        (RESHARD, ("--bandwidth", "1Gbps", "--receivers", 0), "at least 1 receiver"),
        (RESHARD, ("--bandwidth", "1Gbps", "--placement", "spread"), "--placement goes with --network"),
        (
            RESHARD,
            ("--network", "star:n_hosts=5", "--local-bandwidth", "1Gbps"),
            "--local-bandwidth goes with --bandwidth",
        ),
    ],
)
def test_what_cannot_be_played_is_refused_on_one_line(commsim, words, flags, message):
    assert message in commsim.refuses(*with_flags(words, flags))


def test_a_pipeline_sends_small_peaks_and_then_its_gradients(commsim, tmp_path):
    shape = ("--stages", "2", "--micro-batches", "3", "--forward", "30ms", "--backward", "60ms")
    sizes = ("--activation", "10MB", "--weights", "400MB", "--data-parallel", "2", "--bandwidth", "50Gbps")
    path = tmp_path / "jobs.json"
    assert commsim("workload", "pipeline", *shape, *sizes, "--phases", path, "--job", "gpt2").code == 0
    (job,) = read_jobs(path)
    assert (job.name, job.n_gpus) == ("gpt2", 4)
    assert len(job.phases) == 4  # each micro-batch's activations, and the all-reduce of two pipelines
    sent = [phase.rate * phase.duration for phase in job.phases]
    assert sent == pytest.approx([10e6, 10e6, 10e6, 400e6])
    assert job.phases[-1].offset + job.phases[-1].duration == pytest.approx(job.period)


def test_phases_of_a_pipeline_on_a_network_are_those_of_a_link_out_of_a_machine(commsim, tmp_path):
    """They were what one rank sends, over NVLink for one, and called "the link of rank 1"."""
    shape = ["--stages", 4, "--micro-batches", 4, "--forward", "10ms", "--backward", "20ms", "--activation", "10MB"]
    path = tmp_path / "jobs.json"
    for network, said in (
        ("dgx-h100@star:machines=2", "what rank 1 sends inside its machine, which nothing leaves"),
        ("star:n_hosts=4,bandwidth=50Gbps", "h1:switch0, the busiest link out of a machine"),
    ):
        assert commsim("workload", "pipeline", *shape, "--network", network, "--phases", path).code == 0
        assert said in commsim.out
    (job,) = read_jobs(path)
    assert job.n_bytes == pytest.approx(8 * 10e6)  # activations to the next stage, and gradients to the one before


def test_phases_of_experts_hold_all_that_a_gpu_sends(commsim, tmp_path):
    path = tmp_path / "jobs.json"
    layer = ("--layers", "2", "--ranks", "4", "--attention", "1ms", "--expert", "1ms", "--bandwidth", "100Gbps")
    sizes = ("--tokens", "10MB", "--gradients", "20MB", "--policy", "lina")
    assert commsim("workload", "moe", *layer, *sizes, "--phases", path).code == 0
    (job,) = read_jobs(path)
    assert job.name == "lina"
    sent = sum(phase.rate * phase.duration for phase in job.phases)
    assert sent == pytest.approx(2 * 4 * 10e6 * 3 / 4 + 2 * 20e6 * 2 * 3 / 4)  # four all-to-alls of a layer, one ring


def test_what_belongs_to_phases_is_refused_without_them(commsim):
    told = commsim.refuses("workload", "pipeline", "--stages", "2", "--micro-batches", "2", "--forward", "1s",
                           "--backward", "1s", "--job", "x")  # fmt: skip
    assert "--job changes nothing without --phases" in told


@pytest.mark.parametrize("words", [[*MS_BACK, "--activation", "64MiB"], [*MOE, "--policy", "fifo"]])
def test_faults_of_a_network_slow_an_iteration_and_are_told(commsim, words):
    network = ["--network", "leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=4"]
    whole = commsim.results(*words, *network, "-v")["results"][0]["iteration_s"]
    slow = commsim.results(*words, *network, "--scale", "links:80%=0.1", "--fail", "links:1", "--seed", 2, "-v")
    assert slow["results"][0]["iteration_s"] > 1.05 * whole
    assert any(said["text"].startswith("fail links:1: 1 failed: ") for said in slow["remarks"])
    assert "--scale goes with --network" in commsim.refuses(*words, "--bandwidth", "10Gbps", "--scale", "links:80%=0.1")


def test_an_iteration_takes_dispatch_and_combine_of_a_routing_and_two_micro_batches_hide_them(commsim):
    words = ["workload", "moe", "--layers", 2, "--ranks", 16, "--attention", "200us", "--expert", "200us"]
    words += ["--gradients", "1MB", "--network", "dgx-h100@star:machines=2"]
    rows = commsim.results(*words, "--exchange", "tokens=256,library=deepep")["results"]
    assert [row["policy"] for row in rows] == ["fifo", "priority", "two_micro_batches"]
    assert rows[2]["exposed_comm_s"] < rows[1]["exposed_comm_s"]
    assert rows[2]["all_to_all_s"] > rows[1]["all_to_all_s"]  # each half has a launch of its own
    for flags, told in (
        (["--exchange", "hidden=4096"], "--exchange needs tokens=N"),
        (["--exchange", "tokens=8", "--tokens", "1MB"], "one of them"),
        (["--exchange", "tokens=8", "--policy", "lina"], "--policy lina cuts equal blocks"),
    ):
        assert commsim(*words, *flags).code == 2
        assert told in commsim.err


@pytest.mark.parametrize("verb", ["pipeline", "step"])
def test_the_help_names_every_order_of_a_pipeline(commsim, verb):
    assert commsim("workload", verb, "--help").code == 0
    assert ", ".join(ORDERS) in " ".join(commsim.out.split())
