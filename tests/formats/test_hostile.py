"""Files that are made to cost more than they say: refused before they do, in one line, and nothing is written."""

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from commsim.core.errors import InputError
from commsim.formats.chakra.codec import TYPES, varint
from commsim.formats.chakra.traces import read_traces, write_traces
from commsim.formats.context import Context
from commsim.formats.convert import convert
from commsim.formats.goal import MAGIC, read_goal_binary, read_goal_text
from commsim.formats.graphml import read_graphml
from commsim.formats.msccl.to_schedule import schedule_of_algorithm
from commsim.formats.msccl.xml import read_msccl
from commsim.formats.ns3 import read_ns3


def refuse(source: Path, wanted: str, suffix: str = ".npz", from_: str | None = None) -> None:
    target = source.parent / f"out{suffix}"
    with pytest.raises(InputError, match=wanted) as refusal:
        convert(str(source), str(target), Context(), from_)
    assert "\n" not in str(refusal.value)
    assert str(refusal.value).startswith(str(source.with_suffix("")))
    assert not target.exists()


def field(number: int, body: bytes) -> bytes:
    """Return a field of a message of protobuf that holds bytes."""
    return varint(number << 3 | 2) + varint(len(body)) + body


def packed(kind: str) -> bytes:
    """Return a node whose attribute is a list of two million numbers."""
    ones = b"\x01" * 2_000_000
    return field(10, field(1, b"x") + field(4 + 2 * TYPES.index(kind), field(1, ones)))


def message(body: bytes) -> bytes:
    return varint(len(body)) + body


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"\xff" * 11, "a number ends early, or exceeds 64 bits"), (b"\x80", "a number ends early"),
        (b"\xff\xff\xff\xff\x0f", "has 4294967295 bytes, only 0 are there"), (b"", "it is empty"),
        (lambda: bytes(30_000_000), "two nodes have the id 0"),
        (lambda: gzip.compress(bytes(2**27), 1), "unpacks to more than 64 MiB"),
        (lambda: b"\0" + message(b"\x52\0" * 2_000_000), "node 0 has the attribute '' twice"),
        (lambda: b"\0" + message(field(5, b"\x01" * 30_000_000)), "a message has 30000005 bytes, more than 4194304"),
        (lambda: b"\0" + message(packed("int64")), "a list has 2000000 numbers"),
        (lambda: b"\0" + message(packed("bool")), "a list has 2000000 numbers"),
        (lambda: b"\0" + message(b"\xf8\x07\0" * 2_000_000), "a message has 6000000 bytes, more than 4194304"),
    ],
)  # fmt: skip
def test_traces_of_chakra(tmp_path: Path, data: bytes | Callable[[], bytes], wanted: str) -> None:
    (tmp_path / "x.0.et").write_bytes(data() if callable(data) else data)
    refuse(tmp_path / "x.et", wanted)


def binary(n_ranks: int, table: tuple[tuple[int, int], ...], body: bytes = b"") -> bytes:
    return struct.pack("<QIBB", MAGIC, n_ranks, 0, 0) + b"".join(struct.pack("<QQ", *row) for row in table) + body


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (binary(2**32 - 1, ()), "4294967295 ranks do not fit"), (lambda: bytes(2**27 + 1), "larger than 128 MiB"),
        (lambda: binary(2**21, (), bytes(2**25)), "more than 1048576"),
        (binary(2, ((38, 46), (38, 46)), bytes(8)), "the parts of ranks overlap"),
        (binary(2, ((2**63, 2**64 - 1), (38, 46)), bytes(8)), "part of rank 0 is outside of the file"),
        (binary(1, ((22, 30),), struct.pack("<II", 2**32 - 1, 2**32 - 1)), "do not fit into 8 bytes"),
    ],
)  # fmt: skip
def test_goal_in_binary(tmp_path: Path, data: bytes | Callable[[], bytes], wanted: str) -> None:
    (tmp_path / "x.bin").write_bytes(data() if callable(data) else data)
    refuse(tmp_path / "x.bin", wanted, from_="goal-binary")


def test_ranks_of_binary_goal_may_stand_in_any_order_and_do_nothing(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(binary(2, ((46, 54), (38, 46)), bytes(16)))
    assert read_goal_binary(tmp_path / "x.bin").ranks == ((), ())


@pytest.mark.jit
@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"num_ranks 1000000000\n", "line 1: expected num_ranks and a number 1..1048576"),
        (lambda: b"num_ranks 1\nrank 0 {\n" + b"calc 0\n" * 2_000_000 + b"}", "more than 1048576 operations"),
        (lambda: b"num_ranks 1\n" + b"\n" * 5_000_000, "4194304 lines"),
        (lambda: b"num_ranks 1\n" + b"\x0b" * 10_000_000, "line 2: num_ranks is 1, got 0"),
        (lambda: gzip.compress(b"num_ranks 1\n" + bytes(2**28), 1), "unpacks to more than 128 MiB"),
    ],
)
def test_goal_as_text(tmp_path: Path, data: bytes | Callable[[], bytes], wanted: str) -> None:
    (tmp_path / "x.goal").write_bytes(data() if callable(data) else data)
    refuse(tmp_path / "x.goal", wanted)


def test_operations_of_goal_are_counted_however_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commsim.formats.goal.MAX_OPS", 5)
    (tmp_path / "x.goal").write_text("num_ranks 1\nrank 0 {\n" + "calc\t0\n" * 6 + "}")
    refuse(tmp_path / "x.goal", "line 8: more than 5 operations")
    (tmp_path / "x.goal").write_text(
        "num_ranks 3\n" + "".join(f"rank {i} {{\ncalc\t0\ncalc\t0\n}}\n" for i in range(3))
    )
    refuse(tmp_path / "x.goal", "line 13: more than 5 operations")


def test_a_line_of_goal_ends_where_an_editor_says_it_does(tmp_path: Path) -> None:
    (tmp_path / "x.goal").write_bytes(b"num_ranks 1\r\nrank 0 {\r\ncalc 1\r\n}\r\n")
    assert read_goal_text(tmp_path / "x.goal").n_ops == 1


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1000000000 8 0 1 1 H100\n1\n0 1 1Gbps 1ms 0", "word 1 must be a whole number below 4194304"),
        (lambda: "4000000 1 0 0 1 H100\n0 1 1Gbps 1ms 0" + "\n" * 2_000_000,
         "4000000 nodes are more than 1 cables can join"),
        (lambda: "2 1 0 0 1 H100\n" + "a\n" * 3_000_000, "more than 2097152 lines"),
        (lambda: "2 1 0 0 1 H100\n" + "a " * 3_000_000, "one of more than 4194304 characters"),
        ("2 1 0 0 1 H100\n0 1 1e999999999Gbps 1ms 0", "must be a rate"), ("2 1 0 0 1 H100", "needs a line of counts"),
        ("2 1 0 0 1 H100\n0 1 1Gbps 1ms 1ms", "must be a probability"),
        ("2 1 0 0 1 H100\n0 1 1G\x1b[31mbps 1ms 0", "x1b"),
    ],
)  # fmt: skip
def test_networks_of_simai_and_ns3(tmp_path: Path, text: str | Callable[[], str], wanted: str) -> None:
    (tmp_path / "x.txt").write_text(text() if callable(text) else text)
    refuse(tmp_path / "x.txt", wanted, from_="simai")


def test_a_network_of_ns3_has_no_more_nodes_than_its_cables_join(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("4000000 0 1\n0 1 1Gbps 1ms 0" + "\n" * 2_000_000)
    with pytest.raises(InputError, match="4000000 nodes, more than 1 cables can join"):
        read_ns3(tmp_path / "x.txt")


@pytest.mark.parametrize(
    ("topology", "counts", "wanted"),
    [
        ("Ring, Ring", "1000000, 1000000", "1000000000000 hosts"), ("FullyConnected", "5000", "24995000 links"),
        ("Ring", "4, 4", "npus_count must be a list"), ("Ring", "4_0", "npus_count"), ("Ring", "nan", "npus_count"),
        pytest.param("Ring, " * 400_000, "4", "larger than 1 MiB", id="large"),
        ("a, " * 2000, "4", "more than 1024 values"),
    ],
)  # fmt: skip
def test_networks_of_astra_sim(tmp_path: Path, topology: str, counts: str, wanted: str) -> None:
    ones = ", ".join("1" for _ in counts.split(","))
    path = tmp_path / "x.yml"
    path.write_text(f"topology: [{topology}]\nnpus_count: [{counts}]\nbandwidth: [{ones}]\nlatency: [{ones}]\n")
    refuse(path, wanted)


GRAPHML = (
    '<graphml><key id="k" for="node" attr.name="kind" attr.type="string"><default>host</default></key>{}</graphml>'
)


@pytest.mark.parametrize(
    ("inside", "wanted"),
    [
        ("<graph edgedefault='directed'><node id='a'/><node id='a'/></graph>", "'a' is also nodes"),
        ("<graph edgedefault='directed'><node id='a'/><edge source='a' target='b'/></graph>", "the id of a node"),
        ("<graph edgedefault='directed'><node id='a'><graph/></node></graph>", "<graph> is not known inside <node>"),
        ("<graph edgedefault='directed'><hyperedge/></graph>", "<hyperedge> is not known inside <graph>"),
        ("<graph edgedefault='directed'/><graph edgedefault='directed'/>", "must hold one <graph>, got 2"),
        ("<graph edgedefault='sideways'/>", "edgedefault must be directed or undirected"),
        ("<key id='n' for='node' attr.name='x' attr.type='yes'/><graph edgedefault='directed'/>", "attr.type must be"),
        ("<graph edgedefault='directed'><node id='a'/><edge source='a' target='a' directed='false'/></graph>",
         "another direction than edgedefault"),
        ("<graph edgedefault='directed'><node id='a&#x9b;31m'/></graph>", "printable text"),
    ],
)  # fmt: skip
def test_graphml(tmp_path: Path, inside: str, wanted: str) -> None:
    (tmp_path / "x.graphml").write_text(GRAPHML.format(inside))
    refuse(tmp_path / "x.graphml", wanted, ".toml")


def test_a_key_of_graphml_has_a_default_and_a_type(tmp_path: Path) -> None:
    rate = '<key id="r" for="edge" attr.name="rate_bps" attr.type="double"><default>8</default></key>'
    delay = '<key id="d" for="all" attr.name="delay_ns" attr.type="long"/>'
    edges = '<edge source="a" target="b"><data key="d">7</data></edge>'
    inside = f'<graph edgedefault="undirected"><desc/><node id="a"/><node id="b"/>{edges}</graph>'
    (tmp_path / "x.graphml").write_text(GRAPHML.format(rate + delay + inside))
    network = read_graphml(tmp_path / "x.graphml")
    assert (network.nodes, network.bandwidth.tolist(), network.latency[1]) == (("a", "b"), [1.0, 1.0], 7e-9)


def msccl(inside: str, n: int, coll: str, n_chunks: int) -> str:
    return (
        f'<algo name="x" proto="Simple" nchannels="1" nchunksperloop="{n_chunks}" ngpus="{n}" coll="{coll}" '
        f'inplace="1" minBytes="0" maxBytes="9">{inside}</algo>'
    )


def gpus(n: int, n_chunks: int, steps: Callable[[int], str] = lambda _: "") -> str:
    return "".join(f'<gpu id="{i}" i_chunks="{n_chunks}" o_chunks="0" s_chunks="0">{steps(i)}</gpu>' for i in range(n))


def test_an_algorithm_of_msccl_with_chunks_without_end(tmp_path: Path) -> None:
    (tmp_path / "x.xml").write_text(msccl(gpus(2, 2**22), 2, "allreduce", 2**22))
    refuse(tmp_path / "x.xml", "more than 2097152 chunks on all GPUs")
    step = '<step s="{}" type="re" srcbuf="i" srcoff="100" dstbuf="i" dstoff="0" cnt="71" depid="-1" deps="-1"/>'
    steps = "".join(map(step.format, range(256)))
    blocks = "".join(f'<tb id="{b}" send="-1" recv="-1" chan="0">{steps}</tb>' for b in range(32))
    (tmp_path / "x.xml").write_text(msccl(gpus(4, 256, lambda _: blocks), 4, "allreduce", 256))
    refuse(tmp_path / "x.xml", "its steps move more than 2097152 chunks")


def test_the_root_of_many_gpus_is_who_only_sends_and_is_not_searched_among_all(tmp_path: Path) -> None:
    (tmp_path / "x.xml").write_text(msccl(gpus(3000, 1), 3000, "broadcast", 1))
    refuse(tmp_path / "x.xml", "nothing was ever written there")

    def chain(i: int) -> str:
        n = {0: 4, 1: -1}.get(i, i - 1)  # 2 sends to 1, 3 to 2, 4 to 3, 0 to 4: 1 is the last
        kinds = [("r", 0)] * (i != 0) + [("s", 1)] * (i != 1)
        at = 'srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1"'
        steps = "".join(f'<step s="{k}" type="{kind}" {at}/>' for k, (kind, _) in enumerate(kinds))
        before = {1: 2, 2: 3, 3: 4, 4: 0}.get(i, -1)
        return f'<tb id="0" send="{n}" recv="{before}" chan="0">{steps}</tb>'

    (tmp_path / "x.xml").write_text(msccl(gpus(5, 1, chain), 5, "broadcast", 1))
    assert schedule_of_algorithm(read_msccl(tmp_path / "x.xml")[0]).root == 0


def test_schedules_that_would_fill_a_disk_are_not_written(tmp_path: Path) -> None:
    for suffix in ("goal", "bin", "et", "xml", "cm"):
        with pytest.raises(InputError, match=r"ring_all_reduce has 799960000 messages; .* up to 524288"):
            convert("ring_all_reduce", str(tmp_path / f"x.{suffix}"), Context(n_ranks=20_000, size=1e9))
    with pytest.raises(InputError, match=r"too many for a file of text; write it as \.npz"):
        convert("star:n_hosts=300000", str(tmp_path / "x.toml"), Context())
    assert not list(tmp_path.iterdir())


def test_traces_are_written_all_or_none(tmp_path: Path) -> None:
    from commsim.formats.chakra.codec import TraceMetadata
    from commsim.formats.chakra.trace_file import ChakraTrace

    trace = ChakraTrace(TraceMetadata("1"), ())
    (tmp_path / "x.2.et").mkdir()
    with pytest.raises(InputError, match=r"x\.2\.et: cannot write: Is a directory"):
        write_traces([trace] * 4, tmp_path / "x")
    assert [p.name for p in tmp_path.iterdir()] == ["x.2.et"]
    assert write_traces([trace] * 3, tmp_path / "y", {"1": [0, 1, 2]}) == 3
    assert sorted(p.name for p in tmp_path.glob("y*")) == ["y.0.et", "y.1.et", "y.2.et", "y.groups.json"]
    assert (tmp_path / "y.0.et").stat().st_mode & 0o777 == 0o666 & ~_umask()
    with pytest.raises(InputError, match="there are traces of more than 2 ranks"):
        write_traces([trace] * 2, tmp_path / "y")
    assert len(read_traces(tmp_path / "y")) == write_traces([trace] * 3, tmp_path / "y")


def _umask() -> int:
    import os

    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize("target", ["/", ".", "a\0b.et", "folder/none/x.et"])
def test_a_prefix_that_is_no_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError):
        convert("ring_all_reduce", target, Context(n_ranks=2, size=1e6), to="chakra")
    assert not list(tmp_path.iterdir())


def test_a_file_can_be_converted_into_itself(tmp_path: Path) -> None:
    path = tmp_path / "x.yml"
    convert("torus:dims=4x2", str(path), Context())
    before = path.read_text()
    convert(str(path), str(path), Context())
    assert path.read_text() == before
