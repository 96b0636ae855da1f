"""Tables with questions: what a user would ask is asked, and every row keeps its class, operator and interval."""

import csv
import json

import pytest

import commsim as cs
from benchmarks.nccl_tables import asked, asked_summary, command, peaks

HEADER = (
    "id", "source", "op", "nodes", "gpus_per_node", "ranks", "gpu", "nic", "nic_count_per_node", "healthy", "class",
    "topology", "collective", "extra",
)  # fmt: skip
TWO = {"op": "all_reduce", "nodes": 2, "gpus_per_node": 8, "ranks": 16, "gpu": "H100 SXM", "nic": "CX-7 NDR400 IB",
       "nic_count_per_node": 8, "healthy": "yes", "class": "hopper8_rdma", "topology": "hgx-h100@star:machines=2",
       "collective": "nccl_all_reduce:version=2.26"}  # fmt: skip
RACK = TWO | {"op": "all_to_all", "nodes": 1, "gpus_per_node": 4, "ranks": 4, "gpu": "GB300", "nic": "-",
              "nic_count_per_node": 0, "class": "nvl72", "topology": "gb300-nvl72", "extra": "-g 4",
              "collective": "nccl_all_to_all"}  # fmt: skip
MPI = TWO | {"op": "send_recv", "gpus_per_node": 1, "ranks": 2, "gpu": "Azure (HDR200)", "nic": "", "class": "mpi",
             "nic_count_per_node": "", "collective": "",
             "topology": "commsim run --operation send_recv --topology star:n_hosts=2,bandwidth=200Gbps"}  # fmt: skip


def folder(path, **tables):
    with (path / "index.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, HEADER)
        writer.writeheader()
        writer.writerows({"id": name} | line for name, (line, _) in tables.items())
    for name, (_, rows) in tables.items():
        lines = "".join(f"{size},{time}\n" for size, time in rows)
        (path / f"{name}.csv").write_text(f"bytes,time_us\n{lines}")
    return path


def test_rows_are_what_the_command_line_predicts(tmp_path):
    folder(tmp_path, dell_2x8=(TWO, [(8, 25), (2**30, 4485)]), oci_1x4=(RACK, [(2**33, 9000)]))
    rows, unknown = asked.predicted_rows(asked.read_asked(tmp_path))
    assert not unknown
    assert [(row["table"], row["bytes"]) for row in rows] == [("dell_2x8", 2**30), ("oci_1x4", 2**33)]
    two, rack = rows
    alone = cs.predict(TWO["collective"], TWO["topology"], 2**30, overhead="0us")
    assert (two["predicted"], two["low"], two["high"]) == (alone.time, *alone.interval)
    assert rack["predicted"] == cs.predict(RACK["collective"], RACK["topology"], 2**33, n_ranks=4, overhead="0us").time
    assert two["algorithm"] == "nvls_tree/simple"
    assert rack["algorithm"] == "p2p"
    assert two.keys() == set(asked.FIELDS)


def test_bytes_over_nics_count_what_leaves_a_machine(tmp_path):
    folder(tmp_path, dell_2x8=(TWO, [(2**30, 4485)]), oci_1x4=(RACK, [(2**33, 9000)]))
    two, rack = asked.read_asked(tmp_path)
    assert two.nic_rate == 400e9
    assert two.by_nics(2**30) == pytest.approx(2**30 * 2 * 15 / 16 / 400e9)
    assert rack.by_nics(2**33) is None
    shape = peaks.read_peaks(tmp_path)
    assert shape == ()


def test_mpi_is_the_best_of_all_algorithms_as_the_command_line_ranks_them(tmp_path):
    folder(tmp_path, mpi_azure_p2p=(MPI, [(2**20, 60)]))
    (table,) = asked.read_asked(tmp_path)
    (row,), _ = asked.predicted_rows([table])
    topology = "star:n_hosts=2,bandwidth=200Gbps"
    name, best = cs.rank("send_recv", topology, [2**20]).by_size[2**20][0]
    assert (row["predicted"], row["algorithm"]) == (best.time, name)
    assert table.operator == "azure"
    assert table.nic_rate == 25e9


def test_a_question_without_an_answer_is_named(tmp_path, capsys):
    bad = TWO | {"topology": "no-such-machine@star:machines=2"}
    folder(tmp_path, dell_2x8=(TWO, [(2**30, 4485)]), odd=(bad, [(2**30, 4485)]))
    out = tmp_path / "rows.json"
    assert command.main(["--data", str(tmp_path), "--json", str(out), "--only", "d*"]) == 0
    assert "not predicted: odd" not in capsys.readouterr().out
    assert command.main(["--data", str(tmp_path), "--json", str(out)]) == 0
    assert "not predicted: odd: " in capsys.readouterr().out
    assert [row["table"] for row in json.loads(out.read_text())["rows"]] == ["dell_2x8"]
    assert command.main(["--data", str(tmp_path), "--only", "nothing"]) == 2


def test_eight_hopper_are_those_that_an_rdma_network_joins(tmp_path):
    lines = {"a": TWO, "b": TWO | {"nic": "200G TCPXO"}, "c": TWO | {"gpu": "B200 SXM"},
             "d": TWO | {"nic": "400G, NCCL_IB_DISABLE=1"}, "e": TWO | {"gpus_per_node": 1, "ranks": 2}}  # fmt: skip
    folder(tmp_path, **{name: (line, [(2**30, 4485)]) for name, line in lines.items()})
    tables = asked.read_asked(tmp_path)
    assert [table.id for table in tables if asked_summary.is_eight_hopper(table)] == ["a"]


def test_shapes_are_read_as_tables_of_one_large_call(tmp_path):
    head = "operation,nodes,gpus_per_node,ranks,peak_algbw_GBps\n"
    (tmp_path / f"{peaks.NAME}.csv").write_text(f"{head}all_gather,4,8,32,328\nall_to_all,1,2,2,630\n")
    several, one = peaks.read_peaks(tmp_path)
    assert several.topology == "hgx-h100:net=roce,nvls=false@star:machines=4"
    assert several.rows == ((peaks.SIZE, peaks.SIZE / 328e9),)
    assert (one.topology, one.nic_rate) == (peaks.topology_of(1, 2), 0.0)
    (row,), unknown = asked.predicted_rows([one])
    assert not unknown
    times = {size: cs.predict(one.collective, one.topology, size, overhead="0us").time for size in one.sizes}
    latency = min(times[size] for size in (2**12, 2**14, 2**16))
    rates = [size / (times[size] - latency) for size in (2**27, 2**28, 2**29, 2**30)]
    assert row["predicted"] == pytest.approx(2**30 / max(rates))
    assert row["low"] < row["predicted"] < row["high"]
