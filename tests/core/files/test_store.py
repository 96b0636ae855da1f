import contextlib
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectives import COLLECTIVES
from collectives.dense.ring import ring_all_reduce
from commsim.core.errors import InputError
from commsim.core.files.npz import write_arrays
from commsim.core.files.result_file import read_result
from commsim.core.files.schedule_file import read_placed_schedule, read_schedule
from commsim.core.files.store import SUFFIXES, read_network, read_placement, save
from commsim.core.names.nodes_and_links import find_link
from commsim.core.network import KINDS, Network
from commsim.core.pinned_routes import PinnedRoutes
from commsim.core.placement import Placement
from commsim.core.program import Program
from commsim.core.result import Result, Trace
from commsim.core.schedule import SCRATCH
from topologies.fat_tree import fat_tree
from topologies.leaf_spine import leaf_spine
from topologies.star import star


@st.composite
def networks(draw):
    """Networks with every field anywhere in its range."""
    names = draw(st.lists(st.text("abc \u00e9.#\"'[{", min_size=1, max_size=4), min_size=1, max_size=5, unique=True))
    n = len(names)
    links = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=8))
    links = [(a, b) for a, b in links if a != b]

    def column(numbers, size):
        return draw(st.lists(numbers, min_size=size, max_size=size))

    seconds = st.floats(0, 1e3) | st.sampled_from([0.0, 5e-7])
    return Network(
        name=draw(st.text(max_size=5).filter(str.isprintable)),
        nodes=names,
        kind=[0, *column(st.sampled_from(range(len(KINDS))), n - 1)],
        src=[a for a, _ in links],
        dst=[b for _, b in links],
        bandwidth=column(st.floats(1e-3, 1e15), len(links)),
        latency=column(seconds, len(links)),
        buffer=column(st.floats(1e-3, 1e12) | st.just(np.inf), len(links)),
        loss=column(st.floats(0, 0.999), len(links)),
        forwards=column(st.booleans(), n),
        aggregates=column(st.booleans(), n),
        overhead=column(seconds, n),
        recv_overhead=column(seconds, n),
        gamma=column(st.floats(0, 1e-6) | st.sampled_from([0.0, 1 / 50e9]), n),
        routing=draw(st.sampled_from(["ecmp", "shortest", "spray"])),
        machine=column(st.integers(-1, 3) | st.just(2**31 - 1), n),
        metric=column(st.integers(1, 9) | st.just(2**20), len(links)),
    )


@pytest.mark.slow
@given(network=networks(), suffix=st.sampled_from(SUFFIXES))
def test_a_network_reads_back_exactly_as_it_was_saved(tmp_path_factory, network, suffix):
    path = tmp_path_factory.getbasetemp() / f"network{suffix}"
    save(network, path)
    assert read_network(path) == network


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("build", [lambda: fat_tree(4), lambda: leaf_spine(3, 2, 4, uplink_bandwidth=8e9)])
def test_a_topology_reads_back_exactly_as_it_was_saved(tmp_path, suffix, build):
    save(build(), tmp_path / f"x{suffix}")
    assert read_network(tmp_path / f"x{suffix}") == build()


def test_cables_are_written_once(tmp_path):
    save(star(3), tmp_path / "x.json")
    tree = json.loads((tmp_path / "x.json").read_text())
    assert tree["links"][0] == {
        "from": "h0", "to": "switch0", "bandwidth": "100Gbps", "latency": "500ns", "both_ways": True,
    }  # fmt: skip
    assert len(tree["links"]) == 3
    assert tree["nodes"][0] == {"name": "h0", "kind": "host"}


HAND_WRITTEN = """
schema = 1
name = "by hand"

[[nodes]]
name = "a"
kind = "host"
overhead = "1us"
recv_overhead = "2us"
reduce_rate = "50GB/s"

[[nodes]]
name = "s"
kind = "switch"
aggregates = true
gamma = "0.02ns/B"

[[links]]
from = "a"
to = "s"
bandwidth = "100Gbps"
latency = "1.5us"
buffer = "16MiB"
loss = 0.25
both_ways = true
"""


def test_a_network_written_by_hand_means_what_it_says(tmp_path):
    (tmp_path / "x.toml").write_text(HAND_WRITTEN)
    assert read_network(tmp_path / "x.toml") == Network(
        "by hand", ("a", "s"), [0, 1], [0, 1], [1, 0], 12.5e9, 1.5e-6, 2.0**24, 0.25,
        aggregates=[True, True], overhead=[1e-6, 0], recv_overhead=[2e-6, 0], gamma=[1 / 50e9, 0.02e-9],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("schema = 1", "schema = 2", 2, "schema must be 1, the version of the format, got 2"),
        ("schema = 1", "", 0, "schema is missing: 1, the version of the format"),
        (
            'kind = "host"',
            'kind = "tpu"',
            7,
            "nodes[0].kind must be one of host, switch, gpu, cpu, nic, memory, got 'tpu'",
        ),
        ('kind = "host"', 'kind = "host"\nmachine = -2', 8, "nodes[0].machine must be a whole number -1..2147483647"),
        ("both_ways = true", "metric = 0", 25, "links[0].metric must be a whole number 1..1048576, got 0"),
        ('name = "a"', "", 5, "nodes[0].name is missing: text"),
        ('name = "a"', "name = 5", 6, "nodes[0].name must be text, got 5"),
        ('name = "a"', 'name = ""', 6, "nodes[0].name must be printable text, got ''"),
        ('name = "s"', 'name = "a"', 13, "nodes[1].name is taken: 'a' is also nodes[0]"),
        ('"1us"', '"1u"', 8, "nodes[0].overhead must be a time such as 1.5us, got '1u'"),
        ('"50GB/s"', "50e9", 10, 'nodes[0].reduce_rate must be text with a unit, as in "400Gbps", got 50000000000.0'),
        ('"50GB/s"', '"50GB/s"\ngamma = "0s/B"', 11, "nodes[0].gamma and reduce_rate have the same meaning"),
        ("aggregates = true", "aggregates = 1", 15, "nodes[1].aggregates must be true or false, got 1"),
        ("aggregates", "agregates", 15, "nodes[1].agregates is not a field here; did you mean aggregates? known:"),
        ('from = "a"', 'from = "b"', 19, "links[0].from must be the name of a node, got 'b'"),
        ('to = "s"', 'to = "a"', 20, "links[0].to must be another node than from, got 'a'"),
        ('"100Gbps"', '"100Gb"', 21, "links[0].bandwidth must be a rate such as 400Gbps or 50GB/s, got '100Gb', did"),
        ('"100Gbps"', '"0Gbps"', 21, "links[0].bandwidth must be positive and finite, got '0Gbps'"),
        ('latency = "1.5us"', "", 18, "links[0].latency is missing: text with a unit"),
        ('"16MiB"', '"0B"', 23, "links[0].buffer must be a positive size, got '0B'"),
        ("0.25", "1.0", 24, "links[0].loss must be a probability of at least 0 and below 1, got 1.0"),
        ("0.25", "nan", 24, "links[0].loss must be a finite number, got nan"),
        ("both_ways = true", 'both_ways = "yes"', 25, "links[0].both_ways must be true or false, got 'yes'"),
        ("both_ways = true", "weight = 2", 25, "links[0].weight is not a field here"),
        ('name = "by hand"', "name = 1", 3, "name must be text, got 1"),
        ('name = "by hand"', 'routing = "x"', 3, "routing must be one of ecmp, shortest, spray"),
        ('name = "by hand"', "colour = 1", 3, "colour is not a field here"),
    ],
)
def test_a_wrong_field_is_named_with_its_file_and_line(tmp_path, old, new, line, message):
    path = tmp_path / "x.toml"
    assert HAND_WRITTEN.count(old) >= 1
    path.write_text(HAND_WRITTEN.replace(old, new, 1))
    with pytest.raises(InputError) as refusal:
        read_network(path)
    where = f"{path}, line {line}: " if line else f"{path}: "
    assert str(refusal.value).startswith(where + message)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"schema": 1, "nodes": []}, "at least one host"),
        ({"schema": 1, "nodes": {}}, "nodes must be a list of a table, got {}"),
        ({"schema": 1, "nodes": [1]}, "nodes[0] must be a table, got 1"),
        ({"schema": 1}, "nodes is missing"),
        ({"schema": True, "nodes": []}, "schema must be 1"),
        ({}, "schema is missing"),
        ({"schema": 1, "nodes": [{"name": "a", "kind": "host"}], "a\nb": 1}, "'a\\nb' is not a field here"),
    ],
)
def test_a_file_without_a_network_is_refused(tmp_path, tree, message):
    (tmp_path / "x.json").write_text(json.dumps(tree))
    with pytest.raises(InputError) as refusal:
        read_network(tmp_path / "x.json")
    assert str(refusal.value).startswith(str(tmp_path / "x.json"))
    assert message in str(refusal.value)


def test_a_wrong_line_in_a_file_of_5000_lines_is_named_by_its_number(tmp_path):
    lines = ["schema = 1", "nodes = ["]
    lines += [f'  {{name = "h{i}", kind = "host"}},' for i in range(2500)]
    lines += ['  {name = "s", kind = "switch"},', "]", "links = ["]
    lines += [
        f'  {{from = "h{i}", to = "s", bandwidth = "100Gbps", latency = "1us", both_ways = true}},' for i in range(2500)
    ]
    lines[3999] = lines[3999].replace("100Gbps", "100Gb")
    path = tmp_path / "x.toml"
    path.write_text("\n".join([*lines, "]"]))
    with pytest.raises(InputError, match=rf"^{path}, line 4000: links\[1494\]\.bandwidth must be a rate"):
        read_network(path)


def node_link(**changes):
    tree = {
        "directed": True,
        "multigraph": False,
        "graph": {},
        "nodes": [{"id": "h0", "kind": "host"}, {"id": 7, "kind": "switch"}],
        "edges": [{"source": "h0", "target": 7, "rate_bps": 4e11, "delay_ns": 500}],
    }
    return tree | changes


@pytest.mark.parametrize("key", ["edges", "links"])
def test_node_link_json_is_read_whatever_the_edges_are_called(tmp_path, key):
    tree = node_link()
    tree[key] = tree.pop("edges")
    (tmp_path / "x.json").write_text(json.dumps(tree))
    assert read_network(tmp_path / "x.json") == Network("x", ("h0", "7"), [0, 1], [0], [1], 50e9, 500e-9)


def test_what_networkx_writes_is_read(tmp_path):
    nx = pytest.importorskip("networkx")
    graph = nx.MultiGraph(name="g")
    graph.add_node("h0", kind="host")
    graph.add_node("s", kind="switch")
    for _ in range(2):
        graph.add_edge("h0", "s", rate_bps=8e9, delay_ns=1000)
    (tmp_path / "x.json").write_text(json.dumps(nx.node_link_data(graph, edges="edges")))
    expected = Network("g", ("h0", "s"), [0, 1], [0, 0, 1, 1], [1, 1, 0, 0], 1e9, 1e-6)
    assert read_network(tmp_path / "x.json") == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"directed": 1}, "directed must be true or false"),
        ({"graph": {"colour": 1}}, "graph.colour is not a field here"),
        ({"nodes": [{"id": "h0"}]}, "nodes[0].kind is missing"),
        ({"nodes": [{"id": 1.5, "kind": "host"}]}, "nodes[0].id must be text or a whole number"),
        ({"nodes": [{"id": 7, "kind": "host"}, {"id": "7", "kind": "host"}]}, "nodes[1].id is taken: '7'"),
        ({"nodes": [{"id": "", "kind": "host"}], "edges": []}, "printable text"),
        ({"edges": [{"source": "h1", "target": 7}]}, "edges[0].source must be the id of a node, got 'h1'"),
        ({"edges": [{"source": "h0", "target": "h0"}]}, "edges[0].target must be another node than source"),
        ({"edges": [{"source": "h0", "target": 7, "rate_bps": 0, "delay_ns": 0}]}, "edges[0].rate_bps must be a pos"),
        ({"edges": [{"source": "h0", "target": 7, "rate_bps": 1, "delay_ns": -1}]}, "edges[0].delay_ns must be a num"),
        ({"edges": [{"source": "h0", "target": 7, "rate_bps": "1", "delay_ns": 1}]}, "rate_bps must be a finite num"),
        ({"edges": [{"source": "h0", "target": 7, "rate_bps": 1, "delay_ns": 1, "x": 1}]}, "edges[0].x is not a field"),
        ({"edges": [{"source": "h0", "target": 7, "rate_bps": 10**400, "delay_ns": 1}]}, "must be a finite number"),
    ],
)
def test_a_wrong_field_of_node_link_json_is_named(tmp_path, changes, message):
    (tmp_path / "x.json").write_text(json.dumps(node_link(**changes)))
    with pytest.raises(InputError) as refusal:
        read_network(tmp_path / "x.json")
    assert str(refusal.value).startswith(str(tmp_path / "x.json"))
    assert message in str(refusal.value)


def schedules():
    p = Program(4, 8, n_helpers=1, n_scratch=2)
    p.copy(0, src=0, dst=4, dst_buffer=SCRATCH, channel=3)
    p.reduce(src=4, dst=[1, 2], src_chunk=0, dst_chunk=[0, 4], src_buffer=SCRATCH, count=2)
    turning = COLLECTIVES["nccl_all_gather"].build(8, machines=((0, 2, 1, 3), (4, 5, 7, 6)), n_bytes=2**26)
    return [ring_all_reduce(1), ring_all_reduce(5), ring_all_reduce(131_072), p.build(), turning]


@pytest.mark.slow
@pytest.mark.parametrize("schedule", schedules(), ids=lambda s: f"{s.name}-{s.n_ranks}")
def test_a_schedule_reads_back_as_it_was_saved_and_stays_compact(tmp_path, schedule):
    save(schedule, tmp_path / "x.npz")
    back = read_schedule(tmp_path / "x.npz")
    assert back == schedule
    assert hash(back) == hash(schedule)
    assert len(back.blocks) == len(schedule.blocks)
    assert (tmp_path / "x.npz").stat().st_size < 40 * (131_072 + 100)


def test_the_same_schedule_gives_the_same_file(tmp_path):
    for name in ("a", "b"):
        save(ring_all_reduce(9), tmp_path / f"{name}.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def changed_schedule(path, **changes):
    """Save a schedule with fields of its header, or of its transfers, replaced."""
    save(ring_all_reduce(4), path)
    with np.load(path) as archive:
        header, transfers = json.loads(archive["header"].tobytes()), archive["transfers"]
    for key, value in changes.items():
        if key in transfers.dtype.names:
            transfers[key][1] = value
        elif key in header["blocks"][0]:
            header["blocks"][0][key] = value
        else:
            header[key] = value
    write_arrays(path, {"header": np.frombuffer(json.dumps(header).encode(), np.uint8), "transfers": transfers})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_ranks": 0}, "n_ranks=0"),
        ({"n_ranks": 2**40}, "n_ranks must be a whole number 0..2147483647"),
        ({"operation": "all_sum"}, "unknown operation 'all_sum'"),
        ({"kind": "network"}, "kind must be one of schedule, got 'network'"),
        ({"schema": 2}, "schema must be 1"),
        ({"weight": 2}, "weight is not a field here"),
        ({"times": 2**40}, "blocks[0].times must be a whole number 1..16777216"),
        ({"times": 0}, "blocks[0].times must be"),
        ({"step": [1, 2]}, "blocks[0].step must be four whole numbers"),
        ({"step": [0, 0, 2**40, 0]}, "blocks[0].step must be four whole numbers"),
        ({"n_transfers": 3}, "blocks must hold 8 transfers in all, got 7"),
        ({"src": 9}, "src must be 0..3, got 9"),
        ({"count": 0}, "count must be at least 1"),
        ({"op": 7}, "op must be 0..1, got 7"),
        ({"dst_buffer": 3}, "dst_buffer must be 0..2, got 3"),
        ({"channel": -1}, "channel must not be negative"),
        ({"src_chunk": 100}, "src_chunk 100 with count 1 is outside"),
    ],
)
def test_a_wrong_field_of_a_schedule_is_named(tmp_path, changes, message):
    path = tmp_path / "x.npz"
    changed_schedule(path, **changes)
    with pytest.raises(InputError) as refusal:
        read_schedule(path)
    assert str(refusal.value).startswith(f"{path}: ")
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("shape", "arrays", "message"),
    [
        ([2], {}, "blocks[0].orders must be numbers of orders and of their parts"),
        ([0, 8], {}, "blocks[0].orders must be numbers of orders and of their parts"),
        ([2, 9], {}, "orders and order_of_row must have the sizes that the blocks state"),
        ([1, 8], {}, "orders and order_of_row must have the sizes that the blocks state"),
        (
            [2, 8],
            {"order_of_row": np.zeros(3, np.int32)},
            "orders and order_of_row must have the sizes that the blocks state",
        ),
        ([2, 8], {"orders": np.zeros(16, np.int32)}, "must hold each part 0..7 once"),
        ([2, 8], {"orders": np.zeros(16, np.int64)}, "orders must be a one-dimensional array of int32"),
        ([], {}, "is not an array of this kind of file"),
    ],
)
def test_wrong_orders_of_chunks_in_a_file_are_named(tmp_path, shape, arrays, message):
    path = tmp_path / "x.npz"
    save(COLLECTIVES["nccl_all_gather"].build(8, machines=((0, 2, 1, 3), (4, 5, 7, 6)), n_bytes=2**16), path)
    with np.load(path) as archive:
        found = {name: archive[name] for name in archive.files}
    header = json.loads(found["header"].tobytes())
    (block,) = header["blocks"]
    assert block["orders"] == [2, 8]
    block["orders"] = shape
    write_arrays(path, found | arrays | {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)})
    with pytest.raises(InputError) as refusal:
        read_schedule(path)
    assert str(refusal.value).startswith(f"{path}: ")
    assert message in str(refusal.value)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_placement_reads_back_as_it_was_saved(tmp_path, suffix):
    network, path = star(5), tmp_path / f"x{suffix}"
    save(Placement([3, 0, 5]), path, network=network)
    assert read_placement(path, network) == Placement([3, 0, 5])


PINNED = Placement(
    [0, 3], PinnedRoutes.of([(0, 1, 0, [0, 4, 14, 11]), (0, 1, 2, [0, 5, 15, 11]), (1, 0, 0, [3, 6, 12, 8])])
)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_pinned_routes_read_back_as_they_were_saved(tmp_path, suffix):
    network, path = leaf_spine(2, 2, 2), tmp_path / f"x{suffix}"
    PINNED.check(network, 2)
    save(PINNED, path, network=network)
    assert read_placement(path, network) == PINNED


def test_a_route_by_hand_names_links(tmp_path):
    text = """
placement = ["h0", "h1"]
[[routes]]
src = 0
dst = 1
links = ["h0:switch0", "switch0:h1"]
"""
    (tmp_path / "x.toml").write_text(text)
    network = star(4)
    there = [find_link(network, "h0:switch0"), find_link(network, "switch0:h1")]
    assert read_placement(tmp_path / "x.toml", network) == Placement([0, 1], PinnedRoutes.of([(0, 1, 0, there)]))
    (tmp_path / "x.toml").write_text(text.replace("switch0:h1", "switch0:h9"))
    with pytest.raises(InputError, match=r"line 6: routes\[0\]\.links\[1\] must be a link: star.* has no node 'h9'"):
        read_placement(tmp_path / "x.toml", network)


def test_a_schedule_s_file_keeps_weights_and_the_placement_that_it_was_made_for(tmp_path):
    network, path = leaf_spine(2, 2, 2), tmp_path / "x.npz"
    program = Program(2, 4)
    program.copy([0, 3], src=0, dst=1, count=[3, 1], channel=[0, 2])
    schedule = program.build(weights=[3.0])
    save(schedule, path, network=network, placement=PINNED)
    assert read_schedule(path) == schedule
    assert read_placed_schedule(path, network) == (schedule, PINNED)
    assert schedule != program.build()
    save(schedule, path)
    assert read_placed_schedule(path, network) == (schedule, None)


def test_a_schedule_made_for_another_network_says_so(tmp_path):
    path = tmp_path / "x.npz"
    program = Program(2, 1)
    program.copy(0, src=0, dst=1)
    save(program.build(), path, network=leaf_spine(2, 2, 2), placement=PINNED)
    with pytest.raises(InputError, match=r"was made for another network: star.* has no node 'leaf0'"):
        read_placed_schedule(path, star(4))
    read_schedule(path)  # what is sent needs no network


def test_a_placement_by_hand_names_nodes(tmp_path):
    (tmp_path / "x.json").write_text('{"placement": ["h0", "h3"]}')
    assert read_placement(tmp_path / "x.json", star(4)) == Placement([0, 3])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"placement": ["h0",\n"h9"]}', ", line 2: placement[1] must be a node of star:n_hosts=4"),
        ('{"placement": [0]}', ", line 1: placement[0] must be the name of a node, got 0"),
        ('{"placement": "h0"}', ", line 1: placement must be a list of the name of a node, got 'h0'"),
        ('{"placement": []}', ": placement must name at least one node"),
        ('{"nodes": ["h0"]}', ": placement is missing"),
        ('{"placement": ["h0"], "seed": 1}', ", line 1: seed is not a field here"),
    ],
)
def test_a_wrong_placement_is_refused_with_its_line(tmp_path, text, message):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(InputError) as refusal:
        read_placement(path, star(4))
    assert str(refusal.value).startswith(f"{path}{message}")


def test_a_placement_that_the_network_does_not_have_is_neither_read_nor_written(tmp_path):
    save(Placement([9]), tmp_path / "x.npz")
    with pytest.raises(InputError, match=r"nodes must be 0\.\.4 of star.*, got 9"):
        read_placement(tmp_path / "x.npz", star(4))
    with pytest.raises(InputError, match="names a node that star"):
        save(Placement([9]), tmp_path / "x.json", network=star(4))
    with pytest.raises(InputError, match="give its network"):
        save(Placement([9]), tmp_path / "x.json")
    assert not (tmp_path / "x.json").exists()


def result(**changes):
    fields = {"link_bytes": [1, 2.5], "samples": [0.1, 0.2], "counters": {"drops": 2.0, "ecn": 1e300}}
    fields |= {"trace": Trace([0, 1], [1, 2], [2, 3.5])} | changes
    return Result("ring", "all_reduce", "flow", 4, 1e9 / 3, 0.1, 0.05, bytes_on_wire=7.0, **fields)


@pytest.mark.parametrize("name", ["x.json", "x.npz"])
@pytest.mark.parametrize("changes", [{}, {"trace": None}, {"link_bytes": [], "samples": [], "counters": {}}])
def test_a_result_reads_back_as_it_was_saved(tmp_path, name, changes):
    save(result(**changes), tmp_path / name)
    assert read_result(tmp_path / name) == result(**changes)


def test_the_rows_of_a_run_are_named_as_what_they_are(tmp_path):
    """They were refused with: kind is missing."""
    (tmp_path / "run.json").write_text(json.dumps({"schema": 1, "config": {}, "results": [{"time_s": 1.0}]}))
    with pytest.raises(InputError, match=r"run\.json: has the rows of `commsim run --json`.* cs\.save\("):
        read_result(tmp_path / "run.json")


def test_the_trace_of_a_result_in_json_lies_beside_it(tmp_path):
    save(result(), tmp_path / "x.json")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.json", "x.trace.npz"]
    tree = json.loads((tmp_path / "x.json").read_text())
    for elsewhere in ("../x.trace.npz", "/etc/passwd", "x.json", ""):
        (tmp_path / "x.json").write_text(json.dumps(tree | {"trace": elsewhere}))
        with pytest.raises(InputError, match=r"trace must be the name of an \.npz file in the same folder"):
            read_result(tmp_path / "x.json")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"time": -1}, "a result's time must be finite and not negative"),
        ({"time": "1s"}, "time must be a finite number, got '1s'"),
        ({"n_ranks": 0}, "n_ranks must be a whole number 1..2147483647, got 0"),
        ({"operation": "x"}, "unknown operation 'x'"),
        ({"link_bytes": [1, "2"]}, "link_bytes[1] must be a finite number, got '2'"),
        ({"counters": {"drops": True}}, "counters.drops must be a finite number, got True"),
        ({"counters": []}, "counters must be a table, got []"),
        ({"algbw": 1}, "algbw is not a field here"),
        ({"kind": "network"}, "kind must be one of result, got 'network'"),
        ({"trace": "none.npz"}, "none.npz: No such file"),
    ],
)
def test_a_wrong_field_of_a_result_is_named(tmp_path, changes, message):
    path = tmp_path / "x.json"
    save(result(), path)
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(InputError) as refusal:
        read_result(path)
    assert str(refusal.value).startswith(str(tmp_path))
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("value", "name", "message"),
    [
        (star(2), "x.yaml", r"must end with one of \.toml, \.json, \.npz"),
        (star(2), "x", "must end with one of"),
        (ring_all_reduce(2), "x.json", r"a schedule is saved as \.npz"),
        (Result("a", "all_reduce", "b", 1, 1, 1, 1), "x.toml", r"a result is saved as \.json or \.npz"),
    ],
)
def test_a_suffix_that_does_not_suit_is_refused_and_nothing_is_written(tmp_path, value, name, message):
    with pytest.raises(InputError, match=message):
        save(value, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


READERS = {
    "network": (lambda: leaf_spine(2, 2, 3), read_network),
    "schedule": (lambda: ring_all_reduce(6), read_schedule),
    "placement": (lambda: Placement([3, 1, 2]), lambda path: read_placement(path, star(4))),
    "result": (result, read_result),
}


@pytest.mark.parametrize("kind", READERS)
def test_a_file_of_another_kind_is_refused(tmp_path, kind):
    for other, (make, _) in READERS.items():
        save(make(), tmp_path / f"{other}.npz")
    for other in READERS.keys() - {kind}:
        with pytest.raises(InputError, match=f"kind must be one of {kind}, got '{other}'"):
            READERS[kind][1](tmp_path / f"{other}.npz")
    np.savez(tmp_path / "foreign.npz", a=np.zeros(3))
    with pytest.raises(InputError, match="not a commsim file"):
        READERS[kind][1](tmp_path / "foreign.npz")


@pytest.mark.parametrize("kind", READERS)
def test_damaged_bytes_give_an_input_error_or_a_valid_value(tmp_path, kind):
    make, read = READERS[kind]
    path = tmp_path / "x.npz"
    save(make(), path)
    whole, rng, refused = path.read_bytes(), np.random.default_rng(1), 0
    for _ in range(300):
        damaged = bytearray(whole)
        for _ in range(rng.integers(1, 4)):
            damaged[rng.integers(len(whole))] = rng.integers(256)
        path.write_bytes(damaged)
        try:
            read(path)
        except InputError:
            refused += 1
    assert refused > 150


@pytest.mark.slow
@pytest.mark.parametrize("kind", READERS)
@given(data=st.data())
def test_arrays_and_headers_with_wrong_numbers_give_an_input_error_or_a_valid_value(tmp_path_factory, kind, data):
    make, read = READERS[kind]
    path = tmp_path_factory.getbasetemp() / f"{kind}.npz"
    save(make(), path)
    with np.load(path) as archive:
        arrays = {name: archive[name].copy() for name in archive.files}
    header = json.loads(arrays.pop("header").tobytes())
    wrong = st.sampled_from([None, -1, 0, 1, 2**31, 2**70, 1.5, True, "x", [], [0], {}, [{}], [[]]])
    if data.draw(st.booleans()):
        header[data.draw(st.sampled_from(sorted(header)))] = data.draw(wrong)
    name = data.draw(st.sampled_from(sorted(arrays)))
    match data.draw(st.integers(0, 3)):
        case 0:
            raw = arrays[name].view(np.uint8)
            if raw.size:
                raw[data.draw(st.integers(0, raw.size - 1))] ^= data.draw(st.integers(1, 255))
        case 1:
            arrays[name] = arrays[name][: data.draw(st.integers(0, len(arrays[name])))]
        case 2:
            arrays[name] = np.zeros(data.draw(st.sampled_from([(), (1, 2), (3,)])), data.draw(st.sampled_from("if?U")))
        case 3:
            del arrays[name]
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    write_arrays(path, arrays)
    with contextlib.suppress(InputError):
        assert type(read(path)) is type(make())
