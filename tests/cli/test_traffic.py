import json

import pytest
from command_words import with_flags

NETWORK = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4,bandwidth=100Gbps"


def test_traffic_prints_times_between_the_bound_and_twice_it(commsim):
    saved = commsim.results("traffic", "--topology", NETWORK, "--size", "1MB")
    times = [row["finished_s"] for row in saved["results"]]
    assert len(times) == 8
    assert saved["bound_s"] < min(times) <= max(times) < 2 * saved["bound_s"]
    assert f"{max(times) * 1e6:.2f}" in commsim.out
    slower = sorted(row["slowdown"] for row in saved["results"])
    assert slower[0] >= 1
    assert saved["slowdown_cdf"]["1"] == slower[-1]
    assert f"most {slower[-1]:.3f}" in commsim.out


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--transport", "tcp"), "unknown transport 'tcp'; known: nscc"),
        (("--balancing", "mix"), "unknown balancing 'mix'; known: ecmp"),
        (("--entropies", "0"), "power of two"),
        (("--queue", "1kB"), "at least one packet of 4160 bytes"),
        (("--pattern", "ring"), "unknown pattern 'ring'; known: permutation"),
        (("--pattern", "incast", "--peers", "8"), "1 to 7 senders among 8 hosts, got 8"),
        (("--peers", "8"), "--peers changes nothing"),
        (("--spread", "1us"), "--spread changes nothing"),
        (("--flowlet-gap", "1us"), "without --balancing flowlet"),
        (("--ecn", "1kB"), "--ecn is MIN:MAX"),
        (("--sample", "1us"), "--sample changes nothing without --timeline"),
        (("--sample", "0s", "--timeline", "x.json"), "--sample"),
        (("--ecn", "1kB:2kB:a"), "ends with a chance"),
        (("--ecn", "1kB:2kB:nan"), "the chance of a mark"),
        (("--transport", "hpcc"), "balancing ecmp, flowlet or path"),
        (("--transport", "dcqcn:cnp=1us"), "Dcqcn has no parameter 'cnp'"),
        (("--size", "0B"), "--size"),
        (("--topology", "dgx-h100"), "one link each to a switch"),
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
    saved = commsim.results("traffic", "--topology", NETWORK, "--size", "300kB", "--report", path)
    text = path.read_text()
    for title in ("Message completion times (FCT)", "Slowdown of messages", "Queue depth over time", "Path choice"):
        assert title in text
    assert "commsim traffic --topology leaf_spine" in text  # how it was made
    assert f"most {saved['slowdown_cdf']['1']:.3f}" in text
