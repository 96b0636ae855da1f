"""MSCCL XML: an independent interpreter runs what is written; what is read is proved, and predicts the same times."""

from pathlib import Path

import msccl_steps
import numpy as np
import pytest
from drawn_inputs import schedules
from hypothesis import given
from numeric_run import expected
from numeric_run import run_reference as run_schedule

from commsim.cli import main
from commsim.core.errors import InputError, ScheduleError
from commsim.core.program import Program
from commsim.core.schedule import REDUCE, SCRATCH, Schedule
from commsim.formats.context import Context
from commsim.formats.convert import convert
from commsim.formats.msccl.from_schedule import algorithm_of
from commsim.formats.msccl.to_schedule import schedule_of_algorithm
from commsim.formats.msccl.xml import read_msccl, write_msccl
from commsim.prediction.build import prepare
from commsim.prediction.collective_names import load_schedule
from commsim.prediction.inputs import load_network
from commsim.prediction.read import with_costs

COLLECTIVES = (
    "ring_all_reduce", "halving_doubling_all_reduce", "double_tree_all_reduce:n_chunks=2", "ring_all_gather",
    "ring_reduce_scatter", "pairwise_all_to_all", "binomial_broadcast:root=2", "binomial_reduce:root=3",
    "torus_all_reduce:dims=2x4", "recursive_doubling_all_reduce", "multi_ring_all_reduce", "byteps", "bruck_all_to_all",
    "chain_broadcast:n_chunks=6",
)  # fmt: skip
TWO = """<algo name="ring2" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2" coll="allreduce" inplace="1"
 outofplace="0" minBytes="0" maxBytes="1073741824">
 <gpu id="0" i_chunks="2" o_chunks="0" s_chunks="0"><tb id="0" send="1" recv="1" chan="0">
  <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
  <step s="1" type="rrc" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
  <step s="2" type="s" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
  <step s="3" type="r" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/></tb></gpu>
 <gpu id="1" i_chunks="2" o_chunks="0" s_chunks="0"><tb id="0" send="0" recv="0" chan="0">
  <step s="0" type="s" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
  <step s="1" type="rrc" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
  <step s="2" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
  <step s="3" type="r" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/></tb></gpu>
</algo>"""


def step(s: int, kind: str, src: str, dst: str, cnt: int = 1, dep: tuple[int, int] = (-1, -1), hasdep: int = 0) -> str:
    return (f'<step s="{s}" type="{kind}" srcbuf="{src[0]}" srcoff="{src[1:]}" dstbuf="{dst[0]}" dstoff="{dst[1:]}" '
            f'cnt="{cnt}" depid="{dep[0]}" deps="{dep[1]}" hasdep="{hasdep}"/>')  # fmt: skip


def block(number: int, send: int, recv: int, *steps: str) -> str:
    return f'<tb id="{number}" send="{send}" recv="{recv}" chan="0">{"".join(steps)}</tb>'


def algo(coll: str, n_chunks: int, *gpus: str, in_place: int = 1, i: int = -1, o: int = 0, s: int = 0) -> str:
    i = n_chunks if i < 0 else i
    inside = "".join(
        f'<gpu id="{g}" i_chunks="{i}" o_chunks="{o}" s_chunks="{s}">{gpu}</gpu>' for g, gpu in enumerate(gpus)
    )
    return (f'<algo name="x" proto="LL" nchannels="1" nchunksperloop="{n_chunks}" ngpus="{len(gpus)}" coll="{coll}" '
            f'inplace="{in_place}" minBytes="0" maxBytes="1048576">{inside}</algo>')  # fmt: skip


def read(tmp_path: Path, text: str) -> Schedule:
    path = tmp_path / "x.xml"
    path.write_text(text)
    return schedule_of_algorithm(read_msccl(path)[0])


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("n_ranks", [4, 8])
def test_an_independent_interpreter_gets_the_promised_result_in_any_order(
    tmp_path: Path, collective: str, n_ranks: int
) -> None:
    if collective.startswith("torus") and n_ranks == 4:
        collective = "torus_all_reduce:dims=2x2"
    schedule = load_schedule(collective, n_ranks)
    write_msccl(algorithm_of(schedule)[0], tmp_path / "x.xml")
    rng = np.random.default_rng(3)
    data = rng.integers(0, 1000, (n_ranks, schedule.n_chunks)).astype(float)
    promised = expected(schedule.operation, data, schedule.root, schedule.layout)
    for _ in range(2):
        buffers = msccl_steps.run((tmp_path / "x.xml").read_text(), data, rng)
        for rank, (part, wanted) in enumerate(promised):
            if schedule.operation == "reduce_scatter":  # the output is the rank's part alone
                got = buffers["o"][rank]
            else:
                got = buffers["o" if schedule.operation in ("all_to_all", "all_gather") else "i"][rank][part]
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.sample(14)
@pytest.mark.parametrize("network", ["star:n_hosts=8", "fat_tree:k=4,bandwidth=40Gbps,latency=1.5us", "torus:dims=4x2"])
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_predicted_times_after_a_round_trip_are_unchanged(tmp_path: Path, collective: str, network: str) -> None:
    where = with_costs(load_network(network), overhead=3e-7, gamma=1e-10)
    before = prepare(collective, where, n_ranks=8)
    written, _ = algorithm_of(before.schedule)
    write_msccl(written, tmp_path / "x.xml")
    found, notes = read_msccl(tmp_path / "x.xml")
    assert found == written
    assert notes == ()
    schedule = schedule_of_algorithm(found)
    assert (schedule.operation, schedule.n_chunks, schedule.root) == (
        before.schedule.operation, before.schedule.n_chunks, before.schedule.root)  # fmt: skip
    after = prepare(schedule, where, placement=before.placement)
    for size in (1e4, 3e7):
        assert after.predict(size).time == pytest.approx(before.predict(size).time, rel=1e-12)


def test_the_example_of_the_format_is_an_all_reduce(tmp_path: Path) -> None:
    schedule = read(tmp_path, TWO)
    assert (schedule.operation, schedule.n_transfers, schedule.n_hops) == ("all_reduce", 4, 2)


def test_steps_that_receive_reduce_and_send_at_once_are_followed(tmp_path: Path) -> None:
    ring = algo(
        "allreduce", 1,
        block(0, 1, 2, step(0, "s", "i0", "i0"), step(1, "rcs", "i0", "i0")),
        block(0, 2, 0, step(0, "rrs", "i0", "i0"), step(1, "r", "i0", "i0")),
        block(0, 0, 1, step(0, "rrcs", "i0", "i0")),
    )  # fmt: skip
    schedule = read(tmp_path, ring)
    assert schedule.n_transfers == 4 + 1  # four messages, and a local copy of what rrs adds to and does not keep
    data = np.array([[1.0], [20.0], [300.0]])
    for buffer in msccl_steps.run(ring, data, np.random.default_rng(1))["i"]:
        assert buffer.tolist() == [321.0]


def test_out_of_place_all_gather_and_reduce_scatter_are_read(tmp_path: Path) -> None:
    gather = [block(0, 1 - g, 1 - g, step(0, "s", "i0", f"o{g}"), step(1, "r", "i0", f"o{1 - g}"))
              + block(1, -1, -1, step(0, "cpy", "i0", f"o{g}")) for g in range(2)]  # fmt: skip
    assert read(tmp_path, algo("allgather", 2, *gather, in_place=0, i=1, o=2)).operation == "all_gather"
    scatter = [block(0, 1 - g, 1 - g, step(0, "s", f"i{1 - g}", "o0"), step(1, "rrc", f"i{g}", "o0")) for g in range(2)]
    assert read(tmp_path, algo("reduce_scatter", 2, *scatter, in_place=0, o=1)).operation == "reduce_scatter"


def is_ambiguous(schedule: Schedule) -> bool:
    """Whether steps cannot say what a hop says: sums come one by one, and what is read before it is written waits."""
    for transfers in schedule.rounds():
        for hop in np.split(transfers, np.flatnonzero(np.diff(transfers["hop"])) + 1):
            reads, writes = (
                {(t[end], t[f"{end}_buffer"], t[f"{end}_chunk"] + i) for t in hop for i in range(t["count"])}
                for end in ("src", "dst")
            )
            if reads & writes or (hop["op"] == REDUCE).any():
                return True
    return False


@pytest.mark.slow
@given(schedules())
def test_any_schedule_computes_the_same_and_takes_as_long_after_a_round_trip(
    tmp_path_factory: pytest.TempPathFactory, schedule: Schedule
) -> None:
    path = tmp_path_factory.mktemp("m") / "x.xml"
    written, _ = algorithm_of(schedule)
    write_msccl(written, path)
    found, _ = read_msccl(path)
    assert found == written
    again = schedule_of_algorithm(found)
    data = np.random.default_rng(1).integers(0, 99, (schedule.n_ranks, schedule.n_chunks)).astype(float)
    np.testing.assert_array_equal(run_schedule(again, data), run_schedule(schedule, data))
    if schedule.n_transfers and not is_ambiguous(schedule):
        where = load_network("star:n_hosts=4")
        times = [prepare(each, where, placement="packed").predict(1e6).time for each in (schedule, again)]
        assert times[1] == pytest.approx(times[0], rel=1e-12)


@pytest.mark.nojit
def test_a_range_of_sizes_that_the_runtime_never_selects_is_said(tmp_path: Path) -> None:
    path = tmp_path / "x.xml"
    path.write_text(TWO.replace('maxBytes="1073741824"', 'maxBytes="0"'))
    assert "never uses" in read_msccl(path)[1][0]
    path.write_text(TWO.replace('maxBytes="1073741824"', ""))
    assert read_msccl(path)[0].max_bytes == 2**27
    written, _ = algorithm_of(load_schedule("ring_all_reduce", 2))
    assert written.min_bytes == 0 < 2**30 < written.max_bytes
    with pytest.raises(InputError, match="min_bytes < max_bytes"):
        algorithm_of(load_schedule("ring_all_reduce", 2), min_bytes=5, max_bytes=5)


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ('type="rrc" srcbuf="i" srcoff="1"', 'type="r" srcbuf="i" srcoff="1"', "chunk 1 wrong"),
        ('s="2" type="s" srcbuf="i" srcoff="1"', 's="2" type="s" srcbuf="i" srcoff="0"', "to each other|wrong|where"),
        ('cnt="1"', 'cnt="72"', "cnt must be 1..71"), ('srcoff="1"', 'srcoff="2"', "outside of the 2 chunks"),
        ('proto="Simple"', 'proto="Fast"', "proto must be one of"), ('chan="0"', 'chan="1"', "nchannels=1"),
        ('type="s"', 'type="x"', "type must be one of"), ('ngpus="2"', 'ngpus="3"', "must have 3 <gpu>"),
        ('i_chunks="2"', 'i_chunks="1"', "outside|nchunksperloop"), ("<algo", "<topo", "not an algorithm|mismatched"),
        ('s="3"', 's="4"', "each once"), ('recv="1"', 'recv="-1"', "without a peer to receive"),
        ('depid="-1" deps="-1"', 'depid="0" deps="9"', "not there"), ('recv="1"', 'recv="7"', "recv must be"),
        ('s="3" type="r"', 's="3" type="nop"', "never receives"), ('coll="allreduce"', 'coll="sum"', "coll must be"),
        ('depid="-1" deps="-1"', 'depid="0" deps="3"', "deadlock"), ('id="1"', 'id="0"', "each once"),
        ("<algo", '<!DOCTYPE a [<!ENTITY b "b">]><algo', "document type"), ("<step", "<stop", "not known inside"),
    ],
)  # fmt: skip
def test_a_file_that_is_wrong_is_refused_with_the_reason(tmp_path: Path, old: str, new: str, wanted: str) -> None:
    assert old in TWO
    with pytest.raises(InputError, match=wanted):
        read(tmp_path, TWO.replace(old, new, 1) if "<algo" not in old else TWO.replace(old, new))


def test_thread_blocks_that_race_are_refused(tmp_path: Path) -> None:
    gpus = (block(0, 1, -1, step(0, "s", "i0", "i0")) + block(1, -1, -1, step(0, "cpy", "i1", "i0")),
            block(0, -1, 0, step(0, "r", "i0", "i0")))  # fmt: skip
    with pytest.raises(InputError, match="without a dependency"):
        read(tmp_path, algo("custom", 2, *gpus))


def test_a_chunk_that_is_added_twice_is_refused(tmp_path: Path) -> None:
    gpus = [block(0, 1 - g, 1 - g, step(0, "s", "i0", "i0"), step(1, "s", "i0", "i0"), step(2, "rrc", "i0", "i0"),
                  step(3, "rrc", "i0", "i0")) for g in range(2)]  # fmt: skip
    with pytest.raises(ScheduleError, match="2 times"):
        read(tmp_path, algo("allreduce", 1, *gpus))


@pytest.mark.nojit
def test_what_the_runtime_cannot_take_is_not_written() -> None:
    with pytest.raises(InputError, match="helpers"):
        algorithm_of(load_schedule("parameter_server", 4))
    with pytest.raises(InputError, match="256 steps"):
        algorithm_of(load_schedule("chain_broadcast:n_chunks=300", 3))
    with pytest.raises(InputError, match="thread blocks"):
        algorithm_of(load_schedule("direct_all_to_all", 40))


def test_messages_of_many_chunks_are_cut(tmp_path: Path) -> None:
    p = Program(2, 200)
    p.copy(0, src=0, dst=1, count=200)
    written, notes = algorithm_of(p.build("big", "broadcast"))
    assert "1 messages of 72" in notes[0]
    write_msccl(written, tmp_path / "x.xml")
    schedule = schedule_of_algorithm(read_msccl(tmp_path / "x.xml")[0])
    assert sorted(schedule.expand()["count"]) == [58, 71, 71]


def test_adding_to_scratch_that_holds_nothing_is_written_as_a_receive(tmp_path: Path) -> None:
    p = Program(3, 1, n_scratch=1)
    p.reduce(src=[1, 2], dst=0, src_chunk=0, dst_chunk=0, dst_buffer=SCRATCH)
    p.reduce(src=0, dst=0, src_chunk=0, dst_chunk=0, src_buffer=SCRATCH)
    schedule = p.build("scratch", "reduce")
    write_msccl(algorithm_of(schedule)[0], tmp_path / "x.xml")
    text = (tmp_path / "x.xml").read_text()
    assert [text.count(f'type="{kind}"') for kind in ("r", "rrc", "re")] == [1, 1, 1]
    data = np.array([[1.0], [20.0], [300.0]])
    assert msccl_steps.run(text, data, np.random.default_rng(2))["i"][0].tolist() == [321.0]
    again = read(tmp_path, text)
    assert again.n_hops == schedule.n_hops == 2


@pytest.mark.slow
@pytest.mark.nojit
def test_hundreds_of_damaged_files_are_refused_or_read_and_nothing_else(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    path = tmp_path / "x.xml"
    write_msccl(algorithm_of(load_schedule("halving_doubling_all_reduce", 4))[0], path)
    refused = 0
    for good in (path.read_bytes(), TWO.encode()):
        for _ in range(300):
            bad = bytearray(good)
            for place in rng.integers(0, len(bad), rng.integers(1, 3)):
                bad[place] = rng.choice(np.frombuffer(b'0123456789-"irs', np.uint8))
            path.write_bytes(bad)
            try:
                schedule_of_algorithm(read_msccl(path)[0])
            except InputError:
                refused += 1
    assert refused > 300


def test_weights_of_channels_are_read_back_and_the_runtime_s_equal_shares_are_said(tmp_path):
    program = Program(2, 4)
    program.copy([0, 3], src=0, dst=1, count=[3, 1], channel=[0, 1])
    schedule = program.build("weighted", weights=[3.0, 1.0])
    algorithm, notes = algorithm_of(schedule)
    assert "weights of channels are marked, and read back; the runtime gives all channels equal shares" in notes
    write_msccl(algorithm, tmp_path / "x.xml")
    assert schedule_of_algorithm(read_msccl(tmp_path / "x.xml")[0]) == schedule
    text = (tmp_path / "x.xml").read_text()
    for wrong in ("3.0 0", "3.0 x", "inf 1"):
        (tmp_path / "x.xml").write_text(text.replace('weights="3.0 1.0"', f'weights="{wrong}"'))
        with pytest.raises(InputError, match="weights must be positive numbers, one for each channel"):
            read_msccl(tmp_path / "x.xml")


@pytest.mark.parametrize("spec", ["hierarchical_all_reduce", "nccl_all_reduce:algorithm=ring"])
def test_what_is_exported_for_a_network_is_what_runs_there(tmp_path, spec):
    """It was built as on one machine: NCCL's rings, read back, took 2.9 times as long on two machines."""
    network, size, xml, back = "dgx-h100@star:machines=2", 2**20, str(tmp_path / "x.xml"), str(tmp_path / "x.npz")
    said = convert(spec, xml, Context(size=size, network=network))
    assert any("none of what the library's primitives cost" in note for note in said) == spec.startswith("nccl")
    convert(xml, back, Context())
    sent = []
    for schedule in (prepare(spec, network).at(size).schedule, load_schedule(back)):
        rows = schedule.expand()
        rows = rows[rows["src"] != rows["dst"]]
        pairs = np.zeros((schedule.n_ranks, schedule.n_ranks))
        np.add.at(pairs, (rows["src"], rows["dst"]), rows["count"] / schedule.n_chunks)
        sent.append(pairs)
    assert sent[1] == pytest.approx(sent[0])
    (said, *_) = convert(spec, xml, Context(n_ranks=16, size=size))
    assert "built as on one machine; with --topology as `commsim run` builds it there" in said


@pytest.mark.parametrize(
    "words", [["run", "--topology", "star:n_hosts=8", "x.xml"], ["schedule", "save", "x.xml", "-o", "y.npz"]]
)
def test_a_file_of_another_tool_leads_to_its_import(capsys, words):
    assert main(words) == 2
    said = "x.xml is a file of another tool; convert it with `commsim schedule import x.xml -o FILE.npz`"
    assert said in capsys.readouterr().err
