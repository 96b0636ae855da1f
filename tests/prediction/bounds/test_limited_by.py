"""What limits a time has one list of words in all verbs, and a share that follows from the busiest link."""

import json

import numpy as np
import pytest

import commsim as cs
from commsim.cli import main
from commsim.prediction.bounds import limited_by
from commsim.prediction.bounds.limited_by import limit_of, told_limits

LEAF = "leaf_spine:n_leaves=4,n_spines=4,hosts_per_leaf=4,bandwidth=100Gbps"


def limit(collective, network, size, **options):
    solution = cs.solve(cs.scenario_of(collective, network, **options), [size])
    return limit_of(solution.plan, solution.results[0]), solution


@pytest.mark.parametrize(
    ("collective", "network", "size", "options", "what"),
    [
        ("ring_all_reduce", "star:n_hosts=8", "64MiB", {}, "the NICs"),
        ("ring_all_reduce", "star:n_hosts=8", "64B", {}, "messages in turn"),
        ("ring_all_reduce", LEAF, "64MiB", {"fail": [f"link:leaf0:spine{k}" for k in range(3)], "placement": "spread"},
         "leaf-spine cables"),
        ("ring_all_reduce", "torus:dims=4x4", "64MiB", {}, "the cables between hosts"),
        ("ring_all_reduce", "dgx-h100", "1GiB", {}, "NVLink"),
        ("ring_all_reduce", "mi300x", "1GiB", {}, "xGMI"),
        ("ring_all_reduce", "pcie_host", "64MiB", {}, "the links between CPU sockets"),
        ("switchml:system=switchml_rdma,window=8,pool_size=8", "star:n_hosts=8,bandwidth=400Gbps", "16MiB", {},
         "the switch's slots"),
    ],
)  # fmt: skip
def test_the_kind_of_the_busiest_link_limits_or_what_keeps_all_links_idle(collective, network, size, options, what):
    found, solution = limit(collective, network, size, **options)
    assert found.what == what
    (result,) = solution.results
    busy = result.link_bytes / solution.plan.network.bandwidth / result.time
    assert found.busy == pytest.approx(min(1.0, busy.max()))


def test_senders_that_are_held_back_are_not_called_messages_in_turn(commsim):
    """Eight senders of 1 MiB under DCQCN: marks cut their rates, and no link is busy for a fifth of the time."""
    words = ("traffic", "--preset", "roce", "--topology", "star:n_hosts=9", "--pattern", "incast", "--size", "1MiB")
    assert "# limited by: the senders' congestion control (no link is busy for more than" in commsim(*words).out
    words = ("run", "ring_all_reduce", "--topology", "star:n_hosts=4", "--engine", "packet", "--preset", "roce")
    assert "# limited by: timeouts after losses (no link" in commsim(*words, "--loss", "20%", "--size", "64K").out


def test_a_closed_form_has_no_busy_links():
    assert limit("ring_all_reduce", "star:n_hosts=8", "1MiB", engine="closed-form")[0] is None


def test_it_is_said_once_by_size_and_stands_in_the_rows_of_all_doors(tmp_path, capsys):
    out = tmp_path / "r.json"
    assert (
        main(["run", "ring_all_reduce", "--topology", LEAF, "-b", "64", "-e", "64M", "-f", "1024", "-J", str(out)]) == 0
    )
    lines = [line for line in capsys.readouterr().out.splitlines() if "limited by" in line]
    assert len(lines) == 1
    assert lines[0].startswith("# limited by: messages in turn (")
    assert "the NICs" in lines[0]
    rows = json.loads(out.read_text())["results"]
    assert [row["limited_by"] for row in rows][0::2] == ["messages in turn", "the NICs"]
    solution = cs.solve(cs.scenario_of("ring_all_reduce", LEAF), ["64MiB"])
    assert solution.to_frame()["limited_by"][0] == "the NICs"
    limits = [limit_of(solution.plan, result) for result in solution.results]
    assert told_limits(limits, [1.0]).startswith("limited by: the NICs (")
    assert np.isclose(limits[0].busy, rows[-1]["limit_busy"])
    assert main(["bound", "--operation", "all_reduce", "--algorithm", "ring_all_reduce", "--topology", "star:n_hosts=4",
                 "--size", "64M", "-J", str(out)]) == 0  # fmt: skip
    assert json.loads(out.read_text())["results"][0]["limited_by"] == "the NICs"


def test_links_looked_at_a_few_at_once_limit_as_all_of_them(monkeypatch):
    network = cs.load_network("rail_optimized:n_hosts=8,hosts_per_group=4")
    rng = np.random.default_rng(5)
    for _ in range(20):
        busy = rng.integers(0, 4, network.n_links) / 3
        monkeypatch.setattr(limited_by, "AT_ONCE", network.n_links)
        whole = limited_by._by_kind(network, busy)
        monkeypatch.setattr(limited_by, "AT_ONCE", 7)
        assert list(limited_by._by_kind(network, busy).items()) == list(whole.items())
        assert max(whole.values()) == busy.max()
