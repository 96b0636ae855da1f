"""Cases of a folder are asked with the topology that their words say, and counted by the place of their cause."""

import pytest

from benchmarks.diagnosis.cases import answers, summary
from benchmarks.diagnosis.command import main
from benchmarks.diagnosis.topologies import topology_of

INDEX = "id,nodes,gpus_per_node,gpu,nics,nic_gbps,fabric,operation,label,note\n"


def test_cases_are_answered_and_counted(tmp_path):
    rows = [
        "off,1,8,H100 SXM,0,,NVSwitch,all_reduce,nvls_off_or_unavailable,",
        "ok,1,8,H100 SXM,0,,NVSwitch,all_reduce,healthy_expectation_wrong,",
    ]
    (tmp_path / "index.csv").write_text(INDEX + "\n".join(rows) + "\n")
    (tmp_path / "off.csv").write_text("bytes,time_us,busbw,which\n0,,360,measured\n0,,475,reference\n")
    (tmp_path / "ok.csv").write_text("bytes,time_us,busbw,which\n0,,470,measured\n")
    found = answers(tmp_path)
    assert [(one.rank, one.is_one_number) for one in found] == [(1, False), (1, True)]
    several, single, healthy = summary(found)
    assert "top-1 1 of 1" in several
    assert "1 of 1" in single
    assert "1 of 1 first" in healthy


@pytest.mark.parametrize(("words", "parts"), [
    ({"gpu": "H100 SXM (VM)", "nodes": "2", "gpus_per_node": "8", "nics": "8", "nic_gbps": "400", "fabric": "RoCE"},
     ("nvswitch_host:", "n_nics=8", "nic=400Gbps", "net=roce", "nvls=true", "@star:machines=2")),
    ({"gpu": "GB200 (NVL8)", "nodes": "6", "gpus_per_node": "4", "nics": "", "nic_gbps": "", "fabric": "InfiniBand"},
     ("n_gpus=8", "n_nics=8", "@star:machines=3")),
    ({"gpu": "T4 class", "nodes": "2", "gpus_per_node": "1", "nics": "1", "nic_gbps": "50", "fabric": "ENA TCP"},
     ("pcie_host:", "n_pcie_switches=0", "gpudirect=no", "net=efa")),
])  # fmt: skip
def test_words_of_the_index_become_a_topology(words, parts):
    topology = topology_of(words)
    assert all(part in topology for part in parts)


def test_a_folder_without_cases_is_refused(tmp_path, capsys):
    assert main(["--data", str(tmp_path)]) == 2
    assert "index.csv is missing" in capsys.readouterr().err
