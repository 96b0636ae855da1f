"""GOAL: what is written is LogGOPSim's grammar and layout, and reading it gives the same programs and times."""

import re
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from drawn_inputs import schedules
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.core.schedule import Schedule
from commsim.engine.flow import simulate_flows
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from commsim.formats.goal import read_goal_binary, read_goal_text, write_goal_binary, write_goal_text
from commsim.formats.programs.operations import ANY, CALC, RECV, SEND, Programs, RankOperation, graph_of, match
from commsim.formats.programs.programs_to_schedule import schedule_of
from commsim.formats.programs.schedule_to_programs import programs_of
from commsim.prediction.build import prepare
from commsim.prediction.collective_names import load_schedule
from commsim.prediction.inputs import load_network
from commsim.prediction.read import with_costs
from commsim.training.task_graph import simulate_graph

EXAMPLE = """num_ranks 2
// two ranks
rank 0 {
a: calc 1200
/* a comment
   of two lines */
b: send 4096b to 1 tag 7 cpu 0 nic 0
b requires a
}
rank 1 {
a: recv 4096b from 0 tag 7
}
"""


@st.composite
def programs(draw: st.DrawFn) -> Programs:
    n = draw(st.integers(1, 4))
    ranks = []
    for _ in range(n):
        ops = []
        for i in range(draw(st.integers(0, 6))):
            kind = draw(st.sampled_from((SEND, RECV, CALC)))
            earlier = st.lists(st.integers(0, max(0, i - 1)), max_size=3 if i else 0, unique=True)
            peer = draw(st.integers(0, n - 1)) if kind != CALC else 0
            peer = ANY if kind == RECV and draw(st.booleans()) else peer
            tag = draw(st.sampled_from((0, 7, 2**31, ANY))) if kind != CALC else 0
            nic = draw(st.integers(0, 255)) if kind != CALC else 0
            after = tuple(sorted(draw(earlier)))
            ops.append(
                RankOperation(
                    kind,
                    draw(st.integers(0, 2**62)),
                    peer,
                    tag,
                    draw(st.integers(0, 255)),
                    nic,
                    after,
                    tuple(sorted(draw(earlier))),
                )
            )
        ranks.append(tuple(ops))
    return Programs(tuple(ranks))


@given(programs())
def test_text_and_binary_give_back_what_was_written(tmp_path_factory: pytest.TempPathFactory, given_: Programs) -> None:
    path = tmp_path_factory.mktemp("goal") / "x"
    write_goal_text(given_, path)
    assert read_goal_text(path) == given_
    write_goal_binary(given_, path)
    assert read_goal_binary(path) == given_


def test_the_example_of_the_format_is_read(tmp_path: Path) -> None:
    path = tmp_path / "two.goal"
    path.write_text(EXAMPLE)
    assert read_goal_text(path) == Programs(
        ((RankOperation(CALC, 1200), RankOperation(SEND, 4096, 1, 7, after=(0,))), (RankOperation(RECV, 4096, 0, 7),))
    )


def test_every_line_that_is_written_is_in_the_grammar_of_txt2bin(tmp_path: Path) -> None:
    path = tmp_path / "ring.goal"
    schedule = load_schedule("ring_all_reduce", 3)
    write_goal_text(programs_of(schedule, 64.0, 1e-9), path)
    label = "[a-zA-Z][a-zA-Z0-9_]*"
    lines = (
        r"num_ranks 3", r"rank [0-2] \{", r"\}", rf"{label}: send [0-9]+b to [0-9]+ tag [0-9]+",
        rf"{label}: recv [0-9]+b from [0-9]+ tag [0-9]+", rf"{label}: calc [0-9]+", rf"{label} requires {label}",
    )  # fmt: skip
    for line in path.read_text().splitlines():
        assert any(re.fullmatch(one, line) for one in lines), line


@pytest.mark.jit
def test_the_binary_layout_is_that_of_the_records_byte_by_byte(tmp_path: Path) -> None:
    path = tmp_path / "two.bin"
    write_goal_binary(
        Programs(
            (
                (RankOperation(CALC, 1200), RankOperation(SEND, 4096, 1, 7, after=(0,))),
                (RankOperation(RECV, 4096, 0, 7),),
            )
        ),
        path,
    )
    record = struct.Struct("<IBIQIBBIIII")
    assert record.size == 39
    first = 6 + 2 * 16
    ends = (first + 8 + 4 + 2 * 39 + 4, first + 8 + 4 + 2 * 39 + 4 + 8 + 4 + 39)
    assert path.read_bytes() == b"".join((
        struct.pack("<QIBB", 4223, 2, 0, 0), struct.pack("<QQQQ", first, ends[0], ends[0], ends[1]),
        struct.pack("<II", 2, 1), struct.pack("<I", 0),
        record.pack(0, 3, 0, 1200, 0, 0, 0, 1, 0, 0, 1), record.pack(1, 1, 1, 4096, 7, 0, 0, 0, 1, 0, 1),
        struct.pack("<I", 1),
        struct.pack("<II", 1, 1), struct.pack("<I", 0), record.pack(0, 2, 0, 4096, 7, 0, 0, 0, 0, 0, 0),
    ))  # fmt: skip


SAME = ("ring_all_reduce", "chain_broadcast:n_chunks=8",
        "double_tree_all_reduce:n_chunks=4", "halving_doubling_all_reduce",
        "multi_ring_all_reduce:n_channels=2", "direct_all_to_all", "hierarchical_all_reduce")  # fmt: skip


@pytest.mark.sample(14)
@pytest.mark.jit
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("network", ["star:n_hosts=8", "fat_tree:k=4,bandwidth=40Gbps", "torus:dims=4x2"])
@pytest.mark.parametrize("collective", SAME)
def test_predicted_times_after_a_round_trip_are_unchanged(
    tmp_path: Path, collective: str, network: str, binary: bool
) -> None:
    # 0.5 ns a byte of messages of 4096 bytes is a whole number of ns, so that the file holds it exactly.
    where = with_costs(load_network(network), overhead=2e-7, gamma=5e-10)
    before = prepare(collective, where, n_ranks=8)
    schedule = before.schedule
    path = tmp_path / "it"
    count = schedule.expand()["count"]
    (write_goal_binary if binary else write_goal_text)(programs_of(schedule, 4096.0 * count, 5e-10), path)
    read = schedule_of((read_goal_binary if binary else read_goal_text)(path))
    assert read.gamma == pytest.approx(np.where(read.gamma > 0, 5e-10, 0.0), rel=1e-14)
    wanted = before.predict(4096.0 * schedule.n_chunks).time
    alone = prepare(read.schedule, where, placement=before.placement).predict(read.size)
    assert alone.time == pytest.approx(wanted, rel=1e-12)
    job = FlowJob(read.schedule, before.placement, messages=lambda _: read.n_bytes)
    assert simulate_flows(plan_flows(where, [job]), 1.0)[0].time == pytest.approx(wanted, rel=1e-12)


@pytest.mark.jit
@given(schedules(), st.booleans())
def test_any_schedule_takes_as_long_after_a_round_trip(schedule: Schedule, adds: bool) -> None:
    if not schedule.n_transfers:
        return
    gamma = 0.5e-9 if adds else 0.0
    where = with_costs(load_network("star:n_hosts=4"), gamma=gamma)
    before = prepare(schedule, where)
    read = schedule_of(programs_of(schedule, 2000.0 * schedule.expand()["count"], gamma))
    after = prepare(read.schedule, where, placement=before.placement).predict(read.size)
    assert after.time == pytest.approx(before.predict(2000.0 * schedule.n_chunks).time, rel=1e-12)


@pytest.mark.jit
def test_messages_of_sizes_without_a_common_measure_keep_them(tmp_path: Path) -> None:
    ops = Programs(
        (
            (RankOperation(SEND, 2**40 + 1, 1, 0), RankOperation(SEND, 0, 1, 1)),
            (RankOperation(RECV, 2**40 + 1, 0, 0), RankOperation(RECV, 0, 0, 1)),
        )
    )
    read = schedule_of(ops)
    assert read.size == 0
    assert sorted(read.n_bytes) == [0, 2**40 + 1]


def test_ranks_that_send_before_they_receive_do_not_wait_for_each_other_for_ever() -> None:
    both = tuple((RankOperation(SEND, 8, 1 - r), RankOperation(RECV, 8, 1 - r, after=(0,))) for r in range(2))
    assert any("before their receive" in note for note in map(str, schedule_of(Programs(both)).notes))


def test_ranks_that_receive_before_they_send_are_refused_as_a_deadlock() -> None:
    ranks = Programs(
        tuple((RankOperation(RECV, 8, 1 - r), RankOperation(SEND, 8, 1 - r, after=(0,))) for r in range(2))
    )
    with pytest.raises(InputError, match="deadlock"):
        schedule_of(ranks)
    with pytest.raises(InputError, match="deadlock"):
        graph_of(ranks)


def test_computation_becomes_tasks_of_a_workload_and_is_refused_as_a_schedule(tmp_path: Path) -> None:
    path = tmp_path / "two.goal"
    path.write_text(EXAMPLE)
    read = read_goal_text(path)
    line = simulate_graph(graph_of(read), lambda task: task.size / 4.096e9)
    assert line.end.max() == pytest.approx(1200e-9 + 1e-6)
    with pytest.raises(InputError, match="workload"):
        schedule_of(read)


@pytest.mark.parametrize(
    ("ranks", "wanted"),
    [
        (((RankOperation(SEND, 8, 1),), ()), "does not receive"),
        (((RankOperation(SEND, 8, 1),), (RankOperation(RECV, 9, 0),)), "takes 9"),
        (((), (RankOperation(RECV, 9, 0),)), "is never sent"),
        (((RankOperation(SEND, 8, 0),), ()), "another rank"),
        (((RankOperation(SEND, 8, 5),), ()), "another rank"),
        (((RankOperation(SEND, 8, 1),), (RankOperation(RECV, 8, ANY),)), "from any rank"),
        (((), ()), "no rank sends"),
    ],
)
def test_programs_that_make_no_schedule_are_refused_with_the_reason(
    ranks: tuple[tuple[RankOperation, ...], ...], wanted: str
) -> None:
    with pytest.raises(InputError, match=wanted):
        schedule_of(Programs(ranks))


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("num_ranks 2", "num_ranks 3", "got 2"), ("rank 1 {", "rank 2 {", "expected 'rank 1"),
        ("b requires a", "b requires c", "line 8: the label 'c'"), ("4096b to 1", "4096 to 1", "line 7: expected"),
        ("calc 1200", "calc 1.5", "line 4"), ("a: recv", "a: recv 1b from 0\na: recv", "taken"),
        ("send 4096b to", "send 4096b from", "to a rank"), ("tag 7 cpu", "tag 99999999999 cpu", "below"),
        ("calc 1200", f"calc {'9' * 5000}", "below"), ("num_ranks 2", "num_ranks 99999999", "expected num_ranks"),
        ("tag 7\n}", "tag 7\n", "closing bracket"), ("b requires a", "b requires b", "itself"),
    ],
)  # fmt: skip
def test_text_that_is_wrong_is_refused_with_its_line(tmp_path: Path, old: str, new: str, wanted: str) -> None:
    path = tmp_path / "bad.goal"
    assert old in EXAMPLE
    path.write_text(EXAMPLE.replace(old, new))
    with pytest.raises(InputError, match=wanted):
        read_goal_text(path)


@pytest.mark.slow
def test_hundreds_of_damaged_files_are_refused_or_read_and_nothing_else(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    sample = programs_of(load_schedule("halving_doubling_all_reduce", 4), 64.0, 1e-9)
    for write, read in ((write_goal_text, read_goal_text), (write_goal_binary, read_goal_binary)):
        path = tmp_path / "x"
        write(sample, path)
        good = path.read_bytes()
        refused = 0
        for _ in range(400):
            bad = bytearray(good)
            for place in rng.integers(0, len(bad), rng.integers(1, 4)):
                bad[place] = rng.integers(0, 256)
            path.write_bytes(bytes(bad[: rng.integers(0, len(bad))] if rng.random() < 0.3 else bad))
            try:
                schedule_of(read(path))
            except InputError:
                refused += 1
        assert refused > 130


@pytest.mark.jit
@pytest.mark.slow
def test_text_that_makes_a_careless_reader_slow_is_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "slow.goal"
    path.write_text("/*\n" * 200_000)
    with pytest.raises(InputError, match="comment has no end"):
        read_goal_text(path)
    waits = "".join(f"l{i}: calc 1\n" for i in range(50_000)) + "".join(f"l0 requires l{i}\n" for i in range(1, 50_000))
    path.write_text("/* one */ num_ranks 1\n/* a\n b */ rank 0 {\n" + waits + "}\n")
    assert len(read_goal_text(path).ranks[0][0].after) == 49_999


def test_a_binary_file_that_claims_much_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "bomb.bin"
    claims = [
        struct.pack("<QIBB", 4223, 2**32 - 1, 0, 0) + bytes(64),
        struct.pack("<QIBBQQII", 4223, 1, 0, 0, 22, 30, 2**32 - 1, 2**32 - 1),
        struct.pack("<QIBB", 4223, 4, 0, 0) + struct.pack("<QQ", 70, 2**63) * 4,
        struct.pack("<QIBB", 4223, 4, 0, 0) + struct.pack("<QQ", 70, 1070) * 4 + bytes(1000),
    ]
    for claim in claims:
        path.write_bytes(claim)
        tracemalloc.start()
        with pytest.raises(InputError):
            read_goal_binary(path)
        assert tracemalloc.get_traced_memory()[1] < 2**20
        tracemalloc.stop()


@pytest.mark.parametrize("n", [2, 3, 9])
def test_a_deadlock_says_who_waits_for_whom(n: int) -> None:
    # everyone sends to the next only after having received from the one before
    ranks = tuple(
        (RankOperation(RECV, 8, (r - 1) % n), RankOperation(SEND, 8, (r + 1) % n, after=(0,))) for r in range(n)
    )
    for read in (graph_of, schedule_of):
        with pytest.raises(InputError, match="a deadlock") as caught:
            read(Programs(ranks))
        said = str(caught.value)
        assert said.count("waits for") == min(n if read is schedule_of else 2 * n, 4)
        assert ("and so on" in said) == (n > 4 or (n == 3 and read is graph_of))


def test_a_receive_of_any_tag_takes_the_next_message_of_its_source() -> None:
    sends = (RankOperation(SEND, 8, 1, 7), RankOperation(SEND, 16, 1, 9), RankOperation(SEND, 24, 1, 7))
    receives = (RankOperation(RECV, 8, 0, ANY), RankOperation(RECV, 24, 0, 7), RankOperation(RECV, 16, 0, ANY))
    assert [(m.send, m.recv) for m in match(Programs((sends, receives)))] == [(0, 0), (1, 2), (2, 1)]


def test_a_receive_of_any_tag_without_a_message_is_refused() -> None:
    with pytest.raises(InputError, match="any tag that is never sent"):
        match(Programs(((), (RankOperation(RECV, 8, 0, ANY),))))


def test_a_message_of_no_bytes_carries_a_chunk_and_it_is_said() -> None:
    sends = (RankOperation(SEND, 0, 1, 0), RankOperation(SEND, 4096, 1, 1))
    receives = (RankOperation(RECV, 0, 0, 0), RankOperation(RECV, 4096, 0, 1))
    read = schedule_of(Programs((sends, receives)))
    assert read.size > 0
    assert read.size / read.schedule.n_chunks == 1  # byte, of the chunks with which a schedule is run
    assert any("1 message of 0 bytes" in note for note in read.notes)
