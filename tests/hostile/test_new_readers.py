"""Files of fabrics, records of jobs, cost models and hosts with GPUs that nobody means: one line, no flood, no hang."""

import contextlib
import json
import time
from pathlib import Path

import pytest
from fuzzing import attempt

import commsim as cs
from commsim.cli import main
from commsim.core.errors import InputError
from commsim.core.machines.nic_names import in_order, is_nic, split_nic
from commsim.core.units import parse_bandwidth, parse_ratio, parse_time
from commsim.diagnosis.live_expectations import MAX_NETWORKS, LiveExpectations
from commsim.diagnosis.live_records import of_line
from commsim.diagnosis.log_facts import read_log_facts
from commsim.formats.csv_tables import read_csv_rows
from commsim.formats.measured import read_measured
from commsim.formats.recognise import read_network_file
from commsim.placement.schedulers.tier_rates import parse_tiers
from commsim.prediction.inputs import load_network

INPUTS = Path(__file__).parents[1] / "answers" / "inputs"
LONG = "9" * 5000


def refused(path, words):
    with pytest.raises(InputError, match=words) as error:
        read_network_file(path)
    assert len(str(error.value).splitlines()) == 1
    assert len(str(error.value)) < 600


@pytest.mark.parametrize("name", ["cables.csv", "ibnetdiscover.txt", "iblinkinfo.txt", "lldp.json"])
def test_a_number_of_thousands_of_digits_is_no_traceback(name, tmp_path):
    text = (INPUTS / name).read_text()
    for old in ("node00", "leaf00", "[1]", " 4x", "  1["):
        (tmp_path / name).write_text(text.replace(old, old.replace("0", LONG).replace("1", LONG).replace("4", LONG)))
        assert not attempt(["topo", "show", str(tmp_path / name)], "new readers")


def test_numbers_of_any_length_sort_as_people_count():
    assert sorted([f"n{LONG}", "n10", "n2", "n002"], key=in_order)[2:] == ["n10", f"n{LONG}"]


def test_names_of_many_letters_take_no_time_in_pairs_of_places():
    """`mlx5_mlx5_...` of 64 KiB took 10 s."""
    start = time.process_time()
    for text in ("mlx5_" * 13_000 + "-", "a " * 30_000):
        assert split_nic(text) == (text, "")
        assert not is_nic(text)
    assert time.process_time() - start < 1


LONG_LINES = {
    "joined.csv": ("from,to,rate\nh0 1,leaf0 1,100G\n{0},leaf0 2,100G\n", ("1", "a1", "a [", "a" + " " * 40)),
    "ports.txt": ("CA 7 1 0x1 4x NDR - SW 3 1 0x2 ( 'n1 mlx5_0' - 'leaf1' )\nCA 8 1 0x3 4x NDR - SW 3 2 0x2 ( '{0}x\n",
                  ("' - '", "'", " ", "1")),
}  # fmt: skip


@pytest.mark.parametrize("name", LONG_LINES)
def test_a_long_line_takes_no_time_in_pairs_of_places(name, tmp_path):
    """Cells of a device with its port, and names between quotes, took the square of their length, half a minute."""
    text, units = LONG_LINES[name]
    for unit in units:
        (tmp_path / name).write_text(text.format(unit * (60_000 // len(unit)) + "b"))
        start = time.process_time()
        refused(tmp_path / name, "line [23]: ")
        assert time.process_time() - start < 1


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (parse_bandwidth, f"100G{' ' * 60_000}bps"), (parse_time, f"{'1' * 60_000}\nu\ns"),
        (parse_ratio, f"{'1' * 60_000}x"), (parse_tiers, f"1=100{' ' * 60_000}x"), (read_network_file, "links.txt"),
    ],
)  # fmt: skip
def test_blanks_within_a_text_take_no_time_in_pairs_of_places(read, text, tmp_path, monkeypatch):
    """Blanks could be of an expression's end or of what stood before, each as many as they were: 60 kB took 30 s."""
    monkeypatch.chdir(tmp_path)
    lines = (INPUTS / "iblinkinfo.txt").read_text()
    Path("links.txt").write_text(lines.replace("Switch: 0x", f"Switch: 0x1 a{' ' * 60_000}x\nSwitch: 0x", 1))
    start = time.process_time()
    with contextlib.suppress(InputError):
        read(text)
    assert time.process_time() - start < 1


def test_letters_before_a_header_match_a_line_in_one_way(tmp_path):
    """Twenty letters beyond ASCII were twenty expressions of some letters each: a line of forty took hours."""
    table = "# size count type redop root time algbw busbw\n1048576 262144 float sum -1 50.00 20.97 36.70\n"
    (tmp_path / "all_reduce.log").write_text("\u00e9" * 20 + ": " + table + "a" * 40 + "1 x\n")
    start = time.process_time()
    assert len(read_measured(tmp_path / "all_reduce.log", n_ranks=8)) == 1
    assert time.process_time() - start < 1


@pytest.mark.parametrize("header", ["bytes,time_us,a\rb", f'bytes,time_us,"{"x" * 140_000}'])
def test_a_header_that_is_no_row_of_csv_is_refused(header, tmp_path):
    (tmp_path / "all_reduce.csv").write_bytes(f"{header}\n1024,10,1\n".encode())
    with pytest.raises(InputError, match=r"new-line character|field larger"):
        read_csv_rows(tmp_path / "all_reduce.csv")


@pytest.mark.parametrize("rate", ["1.2.3", ".", "", "1" * 400])
def test_a_rate_of_pcie_that_is_no_number_is_passed_over(rate, tmp_path):
    (tmp_path / "a.log").write_text(f"n1:1:2 [0] NCCL INFO + PCI[{rate}] - GPU/1\n+ PCI[12.0] - GPU/2\n")
    assert read_log_facts(tmp_path / "a.log").pcie == 12


@pytest.mark.parametrize(
    ("value", "words"),
    [(5, "must be an object"), ([], "must be an object"), ("results", "expected a list of cables"), (None, "list")],
)
def test_netbox_rows_that_are_none_are_refused(value, words, tmp_path):
    tree = json.loads((INPUTS / "netbox.json").read_text())
    tree = {**tree, "results": [*tree["results"], value]} if words.startswith("must") else {"results": value}
    (tmp_path / "n.json").write_text(json.dumps(tree))
    assert (
        attempt(["topo", "import", str(tmp_path / "n.json"), "--from", "netbox", "-o", str(tmp_path / "o.toml")]) == ""
    )


@pytest.mark.parametrize("name", ["a\nb", "\ud800", "x" * 300, "\x1b[31m"])
def test_names_that_no_table_shows_are_refused(name, tmp_path):
    text = (INPUTS / "lldp.json").read_text()
    (tmp_path / "l.json").write_text(text.replace('"node00"', json.dumps(name)))
    refused(tmp_path / "l.json", "printable text of up to 256 letters")


def test_csv_that_is_none_is_refused(tmp_path):
    (tmp_path / "t.csv").write_bytes(b'bytes,time_us\n1,"2\n' + b"x" * 200_000 + b'"\n')
    with pytest.raises(InputError, match="field larger than"):
        read_csv_rows(tmp_path / "t.csv")
    (tmp_path / "c.csv").write_text('a_device,b_device\n"' + "x\n" * 100_000 + '",b\n')
    with pytest.raises(InputError, match=r"lists no cable|unknown format"):
        read_network_file(tmp_path / "c.csv")


def infragraph(count=2, scheme="one2one", component="nic", physical=None, more=()):
    device = {"name": "d", "components": [{"name": "nic", "count": count, "choice": "nic"}], "edges": list(more)}
    cable = {"name": "c", "physical": {"bandwidth": {"gigabits_per_second": 100}} if physical is None else physical}
    ends = {f"ep{k}": {"instance": "h", "component": component} for k in (1, 2)}
    return {"devices": [device], "instances": [{"name": "h", "device": "d", "count": count}], "links": [cable],
            "edges": [{**ends, "scheme": scheme, "link": "c"}]}  # fmt: skip


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        (infragraph(physical=[1]), "must be an object"), (infragraph(physical={"bandwidth": 5}), "must be an object"),
        (infragraph(LONG), "whole number"), (infragraph(2**20), "components of all instances"),
        (infragraph(1000, "ring"), "more than 262144 edges"),
        (infragraph(component="nic[::0]"), "is no slice"), (infragraph(component=f"nic[{LONG}]"), "is written"),
        (infragraph(2000, more=[{"ep1": {"component": "nic"}, "ep2": {"component": "nic"}, "scheme": "many2many"}]),
         "more than 262144 edges"),
    ],
)  # fmt: skip
def test_infragraph_s_counts_and_slices_have_bounds(tree, words, tmp_path):
    (tmp_path / "i.json").write_text(json.dumps(tree))
    refused(tmp_path / "i.json", words)


def test_hosts_have_as_many_gpus_as_a_network_can_have_nodes(tmp_path):
    """20,000 hosts of 1,024 GPUs took 8 GB."""
    (tmp_path / "c.toml").write_text('[topology]\nname = "star"\nn_hosts = 20000\n[hosts]\ngpus = 1024\n')
    with pytest.raises(InputError, match="would have 20500001 nodes"):
        load_network(str(tmp_path / "c.toml"))


@pytest.mark.parametrize("line", ["insid = '1Gbps'", "inside = 'abc'", "inside = 5"])
@pytest.mark.parametrize("read", [load_network, cs.read_cluster])
def test_what_hosts_do_not_have_is_refused_by_every_reader(line, read, tmp_path):
    (tmp_path / "c.toml").write_text(f'[topology]\nname = "star"\nn_hosts = 4\n[hosts]\ngpus = 2\n{line}\n')
    with pytest.raises(InputError, match="insid"):
        read(str(tmp_path / "c.toml"))


def record(**changes):
    tree = json.loads((INPUTS / "inspector.log").read_text().splitlines()[0])
    for part in ("header", "coll_perf"):
        tree[part] |= {key: value for key, value in changes.items() if key in tree[part]}
    return json.dumps(tree)


@pytest.mark.parametrize("change", [
    {"n_ranks": "8"}, {"n_ranks": {}}, {"n_ranks": 8.5}, {"n_ranks": -8}, {"n_ranks": True}, {"n_ranks": 10**30},
    {"nnodes": -1}, {"coll_msg_size_bytes": 1e400}, {"coll_msg_size_bytes": float("nan")},
    {"coll_msg_size_bytes": 1e-320}, {"coll_msg_size_bytes": 1e300}, {"coll_exec_time_us": float("nan")},
    {"coll_exec_time_us": 1e-7}, {"coll_exec_time_us": -1},
])  # fmt: skip
def test_a_record_with_numbers_of_no_call_is_left_out(change, tmp_path):
    assert of_line(record()) is not None
    assert of_line(record(**change)) is None
    (tmp_path / "a.log").write_text(record(**change) + "\n")
    assert main(["watch", str(tmp_path / "a.log"), "--topology", "hgx-h100"]) == 2


def test_names_in_records_are_shown_without_control_characters():
    found = of_line(record(comm_name="\x1b[31m\ud800\n" + "x" * 9999))
    assert found is not None
    assert found.name.isprintable()
    assert found.name.encode()
    assert len(found.name) < 2000


def test_few_networks_of_watched_machines_are_kept():
    """A record of each number of machines kept a network of as many: 2.8 GB for 400 lines."""
    found = LiveExpectations("hgx-h100", 0.01)
    for n in range(2, 4 + MAX_NETWORKS):
        found._network(n)
    assert len(found._networks) == MAX_NETWORKS


@pytest.mark.parametrize("key", ["size", "time", "low", "machines"])
@pytest.mark.parametrize("value", [-1, 10**400, True])
def test_a_cost_model_holds_numbers(key, value, tmp_path):
    curve = {"operation": "all_reduce", "machines": 2, "gpus": 1, "faults": "", "size": [1, 10], "time": [1e-6, 1e-5],
             "low": [1e-6, 1e-5], "high": [1e-6, 1e-5]}  # fmt: skip
    wrong = curve | {key: [value, 10] if isinstance(curve[key], list) else True}
    for one, is_right in ((curve, True), (wrong, False)):
        tree = {"format": "commsim cost model", "version": 1, "largest_size": 10, "curves": [one]}
        (tmp_path / "m.json").write_text(json.dumps(tree))
        said = attempt(["export", "page", str(tmp_path / "m.json"), "-o", str(tmp_path / "p.html")])
        assert said == ""
        assert (tmp_path / "p.html").exists() == is_right
        (tmp_path / "p.html").unlink(missing_ok=True)


def test_a_report_is_not_forgotten_beside_lines_for_another_program(capsys):
    line = "expect dgx-h100 --operation all_reduce --size 1G --for nccl-tests --report x.html"
    assert main(line.split()) == 2
    assert "--report does not go with --for" in capsys.readouterr().err


@pytest.mark.parametrize("source", ["dgx-h100", "dgx-a100@star:machines=2", "tests/answers/inputs/cables.csv"])
def test_machines_are_written_as_infragraph_and_come_back(source, tmp_path, monkeypatch):
    """KeyError of `dgx-h100`, whose nodes are called without their machine."""
    monkeypatch.chdir(Path(__file__).parents[2])
    out = str(tmp_path / "m.infragraph.yaml")
    assert main(["topo", "export", source, "--to", "infragraph", "-o", out]) == 0
    before, after = load_network(source), load_network(out)
    assert sorted(after.kind) == sorted(before.kind)
    assert after.n_links == before.n_links


@pytest.mark.parametrize(("form", "is_lost"), [("ns3", True), ("simai", True), ("infragraph", True), ("graphml", False),
                                               ("node-link", False), ("astra-network", False)])  # fmt: skip
def test_exports_say_that_hosts_forward(form, is_lost, tmp_path, capsys):
    for source, forwards in (("ring:n_hosts=4", True), ("star:n_hosts=4", False)):
        assert main(["topo", "export", source, "--to", form, "-o", str(tmp_path / "x.yaml")]) == 0
        assert ("that hosts forward for others is lost" in capsys.readouterr().out) == (is_lost and forwards)
