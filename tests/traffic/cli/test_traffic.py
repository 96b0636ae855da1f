import csv
import json

import pytest
from command_words import with_flags

import commsim as cs
from commsim.core.errors import InputError

NETWORK = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4,bandwidth=100Gbps"


def test_traffic_prints_times_between_the_bound_and_twice_it(commsim):
    saved = commsim.results("traffic", "--overhead", "0us", "--topology", NETWORK, "--size", "1MB")
    times = [row["finished_s"] for row in saved["results"]]
    assert len(times) == 8
    assert saved["bound_s"] < min(times) <= max(times) < 2 * saved["bound_s"]
    assert f"{max(times) * 1e6:.2f}" in commsim.out
    slower = sorted(row["slowdown"] for row in saved["results"])
    assert slower[0] >= 1
    assert saved["slowdown_cdf"]["1"] == slower[-1]
    assert f"most {slower[-1]:.3f}" in commsim.out


def test_a_flap_costs_messages_of_the_flow_engine(commsim):
    flap = ("--engine", "flow", "--flap", "link:leaf0:spine0@10us+20us")
    saved = commsim.results("traffic", "--topology", NETWORK, "--size", "1MB", *flap)
    assert len(saved["results"]) == 8
    assert "the flap" in commsim.out


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--transport", "tcp"), "unknown transport 'tcp'; did you mean dctcp? known: nscc"),
        (("--balancing", "mix"), "unknown balancing 'mix'; did you mean mixed? known: ecmp"),
        (("--entropies", "12"), "power of two"),
        (("--queue", "1kB"), "at least one packet of 4160 bytes"),
        (("--pattern", "ring"), "unknown pattern 'ring'; known: permutation"),
        (("--pattern", "incast", "--peers", "8"), "1 to 7 senders among 8 hosts, got 8"),
        (("--peers", "8"), "--peers changes nothing"),
        (("--spread", "1us"), "--spread changes nothing"),
        (("--flowlet-gap", "1us"), "without the balancing flowlet"),
        (("--ecn", "1kB:2kB:3kB:4kB"), "--ecn has at most 2 sizes"),
        (("--sample", "1us"), "--sample changes nothing without --timeline"),
        (("--sample", "0s", "--timeline", "x.json"), "--sample"),
        (("--ecn", "1kB:2kB:a"), "--ecn is MIN, MIN:MAX or MIN:MAX:P"),
        (("--ecn", "1kB:2kB:nan"), "--ecn is MIN, MIN:MAX or MIN:MAX:P"),
        (("--transport", "hpcc", "--balancing", "spray"), "balancing ecmp, flowlet or path"),
        (("--transport", "dcqcn:cnp=1us"), "dcqcn has no parameter 'cnp'"),
        (("--size", "0B"), "--size"),
        (("--topology", "dgx-h100"), "need switches between hosts, and dgx-h100 has none"),
        (("--report", "page.pdf"), "a report is a file that ends with .html"),
        (("--report", "no/such/folder/page.html"), "no such folder"),
    ],
)
def test_what_cannot_be_is_refused_on_one_line(commsim, more, said):
    assert said in commsim.refuses(*with_flags(["traffic", "--topology", NETWORK], more))


def test_a_trace_has_the_queues_and_the_messages_of_the_run(commsim, tmp_path):
    path = tmp_path / "queues.json"
    saved = commsim.results(
        "traffic",
        "--overhead",
        "0us",
        "--topology",
        NETWORK,
        "--pattern",
        "incast",
        "--peers",
        "4",
        "--size",
        "1MB",
        "--timeline",
        path,
        "--sample",
        "10us",
    )
    events = json.loads(path.read_text())["traceEvents"]
    spans = {e["tid"]: e["dur"] for e in events if e["ph"] == "X"}
    assert sorted(spans.values()) == pytest.approx(sorted(row["finished_s"] * 1e6 for row in saved["results"]))
    queues = [e for e in events if e["ph"] == "C" and "queued" in e["args"]]
    assert max(e["args"]["queued"] for e in queues) > 4160  # four senders fill the receiver's queue
    marked = [e["args"]["packets"] for e in events if e["name"] == "packets marked"]
    assert marked == sorted(marked)
    assert 0 < marked[-1] <= saved["counters"]["n_marked"]
    rates = [e["args"]["Gbps"] for e in events if e["ph"] == "C" and "Gbps" in e["args"]]
    assert 99 < max(rates) < 100 + 4160 * 8 / 10e-6 / 1e9  # links of 100 Gbit/s, and a packet at the end of an interval


def test_a_report_has_the_times_and_the_queues_of_the_run(commsim, tmp_path):
    path = tmp_path / "page.html"
    saved = commsim.results("traffic", "--overhead", "0us", "--topology", NETWORK, "--size", "300kB", "--report", path)
    text = path.read_text()
    for title in ("Message completion times (FCT)", "Slowdown of messages", "Queue depth over time", "Path choice"):
        assert title in text
    assert "commsim traffic --topology leaf_spine" in text  # how it was made
    assert f"most {saved['slowdown_cdf']['1']:.3f}" in text


def test_the_rows_of_one_run_are_the_messages_of_another(commsim, tmp_path):
    words = ("traffic", "--topology", NETWORK)
    drawn = commsim.results(
        *words, "--pattern", "incast", "--peers", "5", "--spread", "9us", "--csv", tmp_path / "m.csv"
    )
    read = commsim.results(*words, "--pattern", tmp_path / "m.csv")
    assert "m.csv on leaf_spine" in commsim.out
    assert "--size changes nothing" in commsim.refuses(*words, "--pattern", tmp_path / "m.csv", "--size", "2MB")
    assert read["results"] == drawn["results"]
    assert read["counters"] == drawn["counters"]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("src,dst\n0,1\n", "lacks the columns size_B"),
        ("src,dst,size_B\n0,8,1\n", "line 2: dst must be one of the hosts 0..7, got 8"),
        ("src,dst,size_B\n3,3,1\n", "line 2: dst must be another host than src"),
        ("src,dst,size_B\n0,1,0\n", "line 2: size_B must be at least 1 byte"),
        ("src,dst,size_B,start_s\n0,1,9,-1\n", "messages start at 0 s or later"),
        ("src,dst,size_B\n", "has no messages"),
    ],
)
def test_a_file_of_impossible_messages_is_refused_with_its_line(commsim, tmp_path, rows, said):
    (tmp_path / "m.csv").write_text(rows)
    assert said in commsim.refuses("traffic", "--topology", NETWORK, "--pattern", tmp_path / "m.csv")


def test_flows_share_the_receivers_link_of_an_incast_to_the_last_byte(commsim):
    saved = commsim.results(
        "traffic", "--overhead", "0us", "--topology", NETWORK, "--pattern", "incast:senders=4", "--engine", "flow"
    )
    # 4 MB over 12.5 GB/s, and a way of 2 or 4 links of 500 ns
    assert {round(row["received_s"] * 1e9) for row in saved["results"]} <= {321_000, 322_000}
    assert {round(row["slowdown"], 1) for row in saved["results"]} <= {3.9, 4.0}
    assert "engine flow\n" in commsim.out
    assert "sent_again" not in commsim.out


def test_random_senders_meet_where_a_permutation_does_not(commsim):
    words = ("traffic", "--topology", "star:n_hosts=8", "--pattern")
    (alone, met) = (commsim.results(*words, name)["results"] for name in ("permutation", "random"))
    assert max(row["slowdown"] for row in alone) < 1.2
    assert max(row["slowdown"] for row in met) > 1.8


@pytest.mark.parametrize("flags", [("--fail", "link:leaf0:spine0"), ("--loss", "1%"), ("--preset", "roce")])
def test_what_a_run_of_a_collective_takes_a_pattern_takes_too(commsim, flags):
    words = ("traffic", "--topology", NETWORK, "--size", "300kB")
    whole, other = (commsim.results(*words, *more) for more in ((), flags))
    assert len(other["results"]) == 8
    assert other["bound_s"] < max(row["finished_s"] for row in other["results"])
    assert other["results"] != whole["results"]


def test_a_pattern_has_no_number_of_ranks():
    with pytest.raises(InputError, match="ranks is not modelled for traffic"):
        cs.solve(cs.scenario_of(None, NETWORK, traffic="incast", n_ranks=4, engine="packet", overhead="0us"), ["1MB"])


def test_python_has_what_the_command_line_prints(commsim):
    saved = commsim.results(
        "traffic", "--overhead", "0us", "--topology", NETWORK, "--pattern", "incast", "--peers", "3", "--preset", "uec"
    )
    asked = cs.scenario_of(
        None, NETWORK, traffic="incast:senders=3", engine="packet", packets={"preset": "uec"}, overhead="0us"
    )
    solution = cs.solve(asked, ["1MB"])
    assert [row["finished_s"] for row in saved["results"]] == solution.details.finished.tolist()
    assert solution.results[0].time == max(row["received_s"] for row in saved["results"])


def test_pauses_are_counted_as_run_counts_them(commsim):
    """`traffic --preset roce` showed no pauses, whatever happened."""
    flags = ["--pattern", "incast:senders=4", "--size", "1MB", "--preset", "roce", "--pause", "100kB:50kB"]
    saved = commsim.results("traffic", "--overhead", "0us", "--topology", "star:n_hosts=8", *flags)
    lines = [line.split() for line in commsim.out.splitlines()]
    at = next(i for i, words in enumerate(lines) if "last(us)" in words)
    pauses = saved["counters"]["n_pauses"]
    assert pauses > 0
    assert int(lines[at + 1][lines[at].index("pauses")]) == pauses


MACHINES = "dgx-h100@leaf_spine:machines=2,n_leaves=4,n_spines=2,hosts_per_leaf=4"


def test_a_host_of_a_pattern_on_machines_is_a_gpu_and_that_is_said(commsim, tmp_path):
    page, trace = tmp_path / "page.html", tmp_path / "queues.json"
    words = ("traffic", "--topology", MACHINES, "--size", "300kB", "--pattern", "all_to_all:window=2")
    saved = commsim.results(*words, "--report", page, "--timeline", trace, "-v")
    assert "the 16 GPUs m0.gpu0 to m1.gpu7; numbered like ranks" in commsim.out
    assert "the busiest port that routes choose" in commsim.out
    assert ", queue 3" in commsim.out  # messages inside machines have no queue of a fabric
    rows = saved["results"]
    assert len(rows) == 16 * 15
    assert {row["dst"] for row in rows} == set(range(16))
    assert min(row["slowdown"] for row in rows) >= 1
    assert saved["bound_s"] < max(row["start_s"] + row["finished_s"] for row in rows)
    assert "Queue depth over time" in page.read_text()
    names = {event["name"] for event in json.loads(trace.read_text())["traceEvents"]}
    assert "m0.gpu0 -> m1.gpu7" in names
    inside = [row for row in rows if row["src"] // 8 == row["dst"] // 8]
    across = [row for row in rows if row["src"] // 8 != row["dst"] // 8]
    assert max(row["received_s"] for row in inside) < min(row["received_s"] for row in across)


@pytest.mark.parametrize("topology", [MACHINES, "multi_plane:n_planes=2,n_leaves=2,n_spines=2,hosts_per_leaf=4"])
def test_cables_of_machines_and_planes_fail_and_flap(commsim, topology):
    cable = "leaf0:spine0" if "dgx" in topology else "plane0_leaf0:plane0_spine0"
    port = "m0.nic0:leaf0" if "dgx" in topology else "h0:plane0_leaf0"
    words = ("traffic", "--topology", topology, "--size", "1MB")
    whole = commsim.results(*words)
    flapped = commsim.results(*words, "--flap", f"link:{cable}@5us+30us", "--detection", "10us")
    assert flapped["counters"]["n_dropped"] > whole["counters"]["n_dropped"] == 0
    assert "the flap costs" in commsim.out
    failed = commsim.results(*words, "--fail", f"link:{cable}")
    assert failed["results"] != whole["results"]
    assert "keeps to the ports of its hosts" in commsim.refuses(*words, "--flap", f"link:{port}@5us+30us")


@pytest.mark.parametrize("topology", ["torus:dims=4x4", MACHINES])
def test_flows_and_paths_carry_patterns_anywhere(commsim, topology):
    words = ("traffic", "--topology", topology, "--size", "300kB", "--pattern", "random")
    flows = commsim.results(*words, "--engine", "flow")
    packets = commsim.results(*words, "--transport", "window", "--balancing", "path")
    for saved in (flows, packets):
        assert saved["bound_s"] <= max(row["received_s"] for row in saved["results"])
        assert min(row["slowdown"] for row in saved["results"]) >= 1 - 1e-9


def test_python_and_the_command_line_agree_on_machines(commsim):
    saved = commsim.results(
        "traffic", "--overhead", "0us", "--topology", MACHINES, "--pattern", "incast", "--size", "300kB"
    )
    packets = {"transport": "nscc", "balancing": "mixed"}
    asked = cs.scenario_of(None, MACHINES, traffic="incast", engine="packet", packets=packets, overhead="0us")
    carried = cs.solve(asked, ["300kB"]).details
    assert [row["received_s"] for row in saved["results"]] == carried.received.tolist()
    assert saved["bound_s"] == carried.bound


def test_a_pattern_without_its_flag_and_the_short_name_of_a_size(commsim):
    star = ("--topology", "star:n_hosts=4")
    assert "a pattern is given as --pattern incast" in commsim.refuses("traffic", "incast", *star)
    assert "--pattern" not in commsim.refuses("traffic", *star, "--bogus", "1")
    short, long = (
        commsim.results("traffic", "--overhead", "0us", *star, size, "64KiB")["results"] for size in ("-b", "--size")
    )
    assert short == long


@pytest.mark.parametrize(
    "flags",
    [
        ("--transport", "dcqcn"),
        ("--transport", "dctcp"),
        ("--preset", "roce"),
        ("--transport", "dcqcn", "--balancing", "ecmp"),
        ("--transport", "nscc"),
    ],
)
def test_an_incast_takes_what_a_gather_of_the_same_messages_takes(commsim, flags):
    """`traffic` sprayed and trimmed packets of DCQCN and DCTCP, which `run` sends over one path."""
    star = ("--topology", "star:n_hosts=9", "--seed", "1", *flags)
    sent = commsim.results("traffic", "--overhead", "0us", *star, "--pattern", "incast:senders=8", "--size", "256KiB")
    (run,) = commsim.results(
        "run", "--overhead", "0us", "direct_gather", *star, "--engine", "packet", "--size", "2304KiB"
    )["results"]
    assert max(row["received_s"] for row in sent["results"]) == pytest.approx(run["time_s"], rel=1e-9)
    assert (sent["counters"]["n_trimmed"] > 0) == ("nscc" in flags)
    assert sent["counters"]["peak_queue_bytes"] == run["counters"]["peak_queue_bytes"]


def test_dctcp_marks_whichever_way_its_one_path_is_said(commsim):
    """With `--balancing path --no-trimming` there were no marks: DCTCP without ECN."""
    incast = ("traffic", "--topology", "star:n_hosts=9", "--pattern", "incast:senders=8", "--transport", "dctcp")
    plain = commsim.results(*incast, "-v")
    assert plain["counters"]["n_marked"] > 0
    for way in (("--balancing", "path", "--no-trimming"), ("--no-trimming",), ("--balancing", "path")):
        assert commsim.results(*incast, *way, "-v")["results"] == plain["results"]
    assert "mark from 300 kB" in commsim.out


@pytest.mark.parametrize("transport", ["nscc", "rccc", "swift"])
def test_transports_that_marks_or_trimming_slow_have_queues_of_a_round_trip_on_one_path_too(commsim, transport):
    """With `--balancing path` queues had no end, so that nothing was marked and no window shrank."""
    words = ("traffic", "--topology", "star:n_hosts=9", "--pattern", "incast:senders=8", "--transport", transport)
    one, several = (commsim.results(*words, "--balancing", how) for how in ("path", "ecmp"))
    assert one["counters"]["n_marked"] + one["counters"]["n_trimmed"] > 0
    longest = one["counters"]["peak_queue_bytes"]
    assert longest == several["counters"]["peak_queue_bytes"]
    assert all(row["received_s"] > 0 for row in one["results"])


def test_drops_and_the_longest_queue_stand_in_table_json_and_page(commsim, tmp_path):
    """Drops were only in the JSON, and the longest queue nowhere."""
    page = tmp_path / "page.html"
    words = ("traffic", "--topology", "star:n_hosts=9", "--pattern", "incast:senders=8", "--transport", "dcqcn")
    saved = commsim.results(*words, "--buffer", "64KiB", "--report", page)["counters"]
    assert 0 < saved["peak_queue_bytes"] <= 65536
    lines = [line.split() for line in commsim.out.splitlines()]
    at = next(i for i, words in enumerate(lines) if "last(us)" in words)
    shown = dict(zip(lines[at], lines[at + 1], strict=True))
    assert int(shown["dropped"]) == saved["n_dropped"] > 0
    assert int(shown["longest_queue(B)"]) == saved["peak_queue_bytes"]
    assert f"longest queue {saved['peak_queue_bytes']} B" in page.read_text()
    assert commsim.results(*words)["counters"]["n_dropped"] == 0
    assert "dropped  " not in commsim.out


@pytest.mark.parametrize("verb", ["run", "traffic"])
def test_a_threshold_of_pauses_above_the_queue_is_said_to_have_no_effect(commsim, verb):
    """Links of `--preset roce --buffer 1MiB` never paused, and packets were dropped."""
    what = ("--pattern", "incast:senders=8") if verb == "traffic" else ("direct_gather", "--engine", "packet")
    words = (verb, "--topology", "star:n_hosts=9", *what, "--size", "2MiB", "--preset", "roce", "--buffer", "256KiB")
    saved = commsim.results(*words, "-v")
    dropped = saved["counters"]["n_dropped"] if verb == "traffic" else saved["results"][0]["counters"]["drops_full"]
    assert dropped == 0
    assert "cannot begin" not in commsim.out
    assert commsim(*words, "--pause", "1MB", "-v").code == 0
    assert "pauses (PFC) cannot begin before the queue is full: the threshold of 1000 kB (--pause)" in commsim.out


@pytest.mark.parametrize("kind", ["queues", "fullest", "ways", "packets", "slowdown", "messages"])
def test_figures_of_queues_are_drawn_from_the_json(commsim, tmp_path, kind):
    """`plot queues` said that the file has no times of queues."""
    saved = tmp_path / "t.json"
    assert commsim("traffic", "--topology", NETWORK, "--pattern", "incast", "--peers", 5, "--json", saved).code == 0
    assert commsim("plot", kind, saved, "-o", tmp_path / "f.svg").code == 0, commsim.err
    drawn = list(csv.DictReader((tmp_path / "f.csv").read_text().splitlines()))
    assert len(drawn) > 1
    if kind == "queues":
        assert max(float(row["queue_B [B]"]) for row in drawn) > 5 * 1500  # five senders fill the receiver's queue


def test_figures_of_other_messages_than_those_of_the_file_are_refused(commsim, tmp_path):
    saved = tmp_path / "t.json"
    assert commsim("traffic", "--topology", NETWORK, "--size", "300kB", "--json", saved).code == 0
    tree = json.loads(saved.read_text())
    tree["config"]["topology"] += ",latency=3us"
    saved.write_text(json.dumps(tree))
    assert "other times" in commsim.refuses("plot", "queues", saved, "-o", tmp_path / "f.svg")
    flow = ("traffic", "--topology", NETWORK, "--size", "300kB", "--engine", "flow", "--json", saved)
    assert commsim(*flow).code == 0
    assert "nothing to draw as queues" in commsim.refuses("plot", "queues", saved, "-o", tmp_path / "f.svg")
