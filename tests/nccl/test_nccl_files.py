import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.formats.measurement import Measurement
from commsim.nccl.nccl_setting import ALGORITHMS, PROTOCOLS
from commsim.nccl.tuner_and_graph_files import read_nccl_graphs, read_tuner, rules_of_rows, write_tuner
from commsim.nccl.tuner_rules import COLLECTIVES, Rule

rules = st.builds(
    lambda operation, a, b, algorithm, protocol, n: Rule(operation, min(a, b), max(a, b), algorithm, protocol, *n),
    st.sampled_from(sorted(COLLECTIVES)), st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1),
    st.sampled_from(ALGORITHMS), st.sampled_from(PROTOCOLS), st.tuples(*[st.integers(-1, 10**6)] * 3),
)  # fmt: skip


@given(st.lists(rules, max_size=5), st.text(max_size=300))
def test_rules_are_read_back_as_they_were_written(tmp_path_factory, made, comment):
    path = tmp_path_factory.mktemp("tuner") / "tuner.csv"
    write_tuner(path, made, comment)
    assert read_tuner(path) == tuple(made)
    assert all(len(line) <= 255 for line in path.read_text().splitlines())


def test_a_rule_is_written_to_the_letter(tmp_path):
    write_tuner(tmp_path / "t.csv", [Rule("all_reduce", 0, 65536, "tree", "ll", -1, 4, 32)], "from a test")
    assert (tmp_path / "t.csv").read_bytes() == (
        b"# from a test\n"
        b"# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff\n"
        b"allreduce,0,65536,tree,ll,-1,4,32,-1,-1\n"
    )


@pytest.mark.parametrize("line", ["allreduce,0", "allreduce,0,x,tree,ll,-1,4,32", "gather,0,1,tree,ll,-1,4,32",
                                  "allreduce,9,1,tree,ll,-1,4,32", "allreduce,0,1,tree,lll,-1,4,32"])  # fmt: skip
def test_a_line_that_is_no_rule_is_refused_by_number(tmp_path, line):
    (tmp_path / "t.csv").write_text(f"# comment\n\n{line}\n")
    with pytest.raises(InputError, match=r"t.csv, line 3: "):
        read_tuner(tmp_path / "t.csv")


def row(size, time, algorithm, operation="all_reduce", protocol=""):
    return Measurement(operation, size, time, 8, algorithm, protocol)


def test_the_fastest_of_our_results_becomes_rules():
    notes = []
    rows = [row(1024, 2.0, "ring_all_reduce"), row(1024, 1.0, "double_tree_all_reduce"),
            row(4096, 2.0, "ring_all_reduce"), row(4096, 1.0, "double_tree_all_reduce"),
            row(16384, 1.0, "ring_all_reduce:x=1"), row(16384, 2.0, "double_tree_all_reduce"),
            row(65536, 1.0, "ring_all_reduce"), row(65536, 0.5, "halving_doubling_all_reduce")]  # fmt: skip
    found = rules_of_rows(rows, n_nodes=1, notes=notes)
    # the border is the geometric middle of 4096 and 16384
    assert found == (
        Rule("all_reduce", 1024, 8192, "tree", "simple", -1, 1, 8),
        Rule("all_reduce", 8193, 65536, "ring", "simple", -1, 1, 8),
    )
    assert notes == ["NCCL has no algorithm for halving_doubling_all_reduce: left out"]
    assert rules_of_rows([row(8, 1.0, "NVLS", protocol="Simple")])[0].algorithm == "nvls"
    with pytest.raises(InputError, match="no row has an algorithm that NCCL knows"):
        rules_of_rows([row(8, 1.0, "halving_doubling_all_reduce")])


GRAPHS = """<graphs version="1">
 <graph id="0" pattern="4" crossnic="0" nchannels="{n}" speedintra="{speed}" speedinter="{speed}" latencyinter="0.5"
   typeintra="NVL" typeinter="PIX" samechannels="1"/>
 <graph id="1" pattern="1" crossnic="0" nchannels="8" speedintra="45" speedinter="22.5" typeintra="NVL" typeinter="PXN"
   samechannels="0"/>
 <graph id="2" pattern="5" crossnic="0" nchannels="0" speedintra="0" speedinter="0" typeintra="NVL" typeinter="PIX"
   samechannels="1"/>
</graphs>"""


def test_dumped_channels_are_read_and_doubled_as_nccl_does_after_the_dump(tmp_path):
    path = tmp_path / "graphs.xml"
    path.write_text(GRAPHS.format(n=6, speed="60"))
    found = read_nccl_graphs(path, "hopper")
    assert set(found) == {"ring", "tree"}
    ring, tree = found["ring"], found["tree"]
    assert (ring.n, ring.intra, ring.inter, ring.latency, ring.same) == (12, 30e9, 30e9, pytest.approx(0.5e-6), True)
    assert (tree.n, tree.intra, tree.inter, tree.path_inter, tree.same) == (8, 45e9, 22.5e9, "PXN", False)


@pytest.mark.parametrize(
    ("change", "message"),
    [(("<graphs ", "<system "), "line 1"), (('pattern="4"', 'pattern="9"'), "line 2: <graph> has the pattern '9'"),
     (('typeinter="PIX"', 'typeinter="USB"'), "has the path 'USB'"), (('"60"', '"1e9"'), "speedintra must be a number"),
     (('pattern="4"', 'pattern="1"'), "has no ring")],
)  # fmt: skip
def test_other_xml_is_refused(tmp_path, change, message):
    path = tmp_path / "graphs.xml"
    path.write_text(
        GRAPHS.format(n=6, speed="60").replace(*change).replace(f"/{change[0][1:-1]}>", f"/{change[1][1:-1]}>")
    )
    with pytest.raises(InputError, match=message):
        read_nccl_graphs(path, "hopper")
