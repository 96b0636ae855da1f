"""The virtual times of emulated programs: those of predictions, of jobs that share links, and of closed forms."""

import numpy as np
import pytest

import commsim as cs
from commsim.core.units import parse_size
from commsim.emulation.current import current_rank
from commsim.emulation.rank_calls import Collective, Receive, Send
from commsim.jobs.job_entries import Composition, JobEntry

STAR = "star:n_hosts=8,bandwidth=100Gbps,latency=1us"
THIN = "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=4,bandwidth=25Gbps"


def bytes_of(size):
    return float(parse_size(size)) if isinstance(size, str) else size


def calls(*made, late=()):
    """Return a program in which every rank begins all calls of which it is a member, and waits for them."""

    def program():
        rank = current_rank()
        begun = []
        for (operation, members, algorithm, size), start in zip(made, late or [0.0] * len(made), strict=True):
            if rank.number in members:
                rank.compute(start - rank.now())
                call = Collective(operation, members, algorithm, bytes_of(size), algorithm=algorithm)
                begun.append(rank.post(call))
        rank.wait(begun)

    return program


@pytest.mark.parametrize(
    ("collective", "network", "size"),
    [
        ("ring_all_reduce", STAR, "1MiB"),
        ("halving_doubling_all_reduce", STAR, 3000.0),
        ("binomial_broadcast:root=3", STAR, "64KiB"),
        ("pairwise_all_to_all", THIN, "1MiB"),
        ("bruck_all_gather", THIN, "8KiB"),
        ("dissemination_barrier", STAR, 0.0),
        ("nccl_all_reduce", "dgx-h100", "64MiB"),
        ("nccl_all_reduce", "dgx-a100", "64KiB"),
    ],
)
def test_a_collective_by_itself_takes_what_is_predicted(collective, network, size):
    operation = cs.COLLECTIVES[collective.partition(":")[0]].metadata["operation"]
    found = cs.emulate(calls((operation, tuple(range(8)), collective, size)), network, 8)
    predicted = cs.predict(collective, network, size, n_ranks=8)
    assert found.time == pytest.approx(predicted.time, rel=1e-9)
    assert found.link_bytes == pytest.approx(predicted.link_bytes, rel=1e-9)


@pytest.mark.parametrize("leave", ["together", "own"])
@pytest.mark.parametrize(
    "made",
    [
        [("all_reduce", (0, 4, 1, 5), "ring_all_reduce", "1MiB"), ("all_gather", (2, 6), "ring_all_gather", "3MiB")],
        [
            ("all_to_all", (0, 1, 4, 5), "direct_all_to_all", "1MiB"),
            ("broadcast", (3, 7), "binomial_broadcast", 1e5),
            ("all_reduce", (2, 6), "halving_doubling_all_reduce", "1MB"),
        ],
    ],
)
def test_collectives_that_overlap_take_what_jobs_of_a_file_take(made, leave):
    starts = [30e-6 * k for k in range(len(made))]
    found = cs.emulate(calls(*made, late=starts), THIN, 8, leave=leave, records=True)
    jobs = Composition(
        tuple(
            JobEntry(str(k), algorithm, members, bytes_of(size), start)
            for k, ((_, members, algorithm, size), start) in enumerate(zip(made, starts, strict=True))
        ),
        (),
    )
    together = cs.solve(cs.scenario_of(None, THIN, jobs=jobs))
    for (_, members, _, _), result, start in zip(made, together.results, starts, strict=True):
        end = max(record.end for record in found.records if record.rank in members)
        assert end - start == pytest.approx(result.time, rel=1e-9)


def test_a_message_beside_a_collective_takes_what_it_takes_as_a_job():
    ring = (0, 4, 1, 5)

    def program():
        rank = current_rank()
        begun = []
        if rank.number in ring:
            begun.append(rank.post(Collective("all_reduce", ring, 0, 1e6, algorithm="ring_all_reduce")))
        if rank.number == 2:
            rank.compute(20e-6)
            begun.append(rank.post(Send(6, 0, 0, 5e5)))
        if rank.number == 6:
            begun.append(rank.post(Receive(2, 0, 0)))
        rank.wait(begun)

    found = cs.emulate(program, THIN, 8, eager="1MB", records=True)
    jobs = Composition(
        (JobEntry("a", "ring_all_reduce", ring, 1e6), JobEntry("b", "binomial_broadcast", (2, 6), 5e5, 20e-6)), ()
    )
    reduced, message = cs.solve(cs.scenario_of(None, THIN, jobs=jobs)).results
    end = {record.operation: record.end for record in found.records}
    assert end["all_reduce"] == pytest.approx(reduced.time, rel=1e-9)
    assert end["receive"] == pytest.approx(20e-6 + message.time, rel=1e-9)


def test_messages_between_two_ranks_follow_each_other_at_the_rate_of_the_link():
    def program():
        rank = current_rank()
        if rank.number == 0:
            rank.wait([rank.post(Send(1, 0, 0, 1e5)) for _ in range(10)])
        elif rank.number == 1:
            begun = [rank.post(Receive(0, 0, 0)) for _ in range(10)]
            for k, one in enumerate(begun):
                rank.wait([one])
                assert rank.now() == pytest.approx((k + 1) * (1e-6 + 1e5 / 12.5e9) + 2e-6, rel=1e-9)

    cs.emulate(program, STAR, 2, overhead="1us")


def test_ranks_that_leave_when_their_part_is_over_let_the_next_collective_begin_earlier():
    def program():
        rank, members = current_rank(), tuple(range(8))
        for _ in range(3):
            rank.wait([rank.post(Collective("broadcast", members, 0, 1e5, algorithm="chain_broadcast:n_chunks=4"))])

    one = cs.predict("chain_broadcast:n_chunks=4", STAR, 1e5).time
    assert cs.emulate(program, STAR, 8).time == pytest.approx(3 * one, rel=1e-9)
    own = cs.emulate(program, STAR, 8, leave="own")
    assert one < own.time < 2 * one
    assert own.ends[0] < own.ends[7]


def test_a_moment_does_not_depend_on_how_long_the_program_has_run():
    def program():
        rank, members = current_rank(), tuple(range(8))
        for _ in range(50):
            begin = rank.now()
            rank.wait([rank.post(Collective("all_reduce", members, 0, 1e4, algorithm="ring_all_reduce"))])
            lasts.add(round((rank.now() - begin) * 1e15))

    lasts = set()
    found = cs.emulate(program, STAR, 8)
    assert found.n_simulated == 1
    assert len(lasts) == 1
    assert np.ptp(found.ends) == 0


def test_collectives_of_one_process_group_follow_each_other():
    """Two buckets that were started together went over two spines at once, a fifth faster than on one stream."""
    spines = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2,bandwidth=25Gbps,uplink_bandwidth=12.5Gbps"
    sizes = ("4MiB", "1MiB", "2MiB")

    def program(in_order):
        def run():
            rank = current_rank()
            made = [
                Collective(
                    "all_reduce", (0, 1, 2, 3), "g", bytes_of(size), algorithm="ring_all_reduce", in_order=in_order
                )
                for size in sizes
            ]
            rank.wait([rank.post(call) for call in made])

        return run

    one_by_one = sum(cs.predict("ring_all_reduce", spines, size, n_ranks=4).time for size in sizes)
    assert cs.emulate(program(True), spines, 4).time == pytest.approx(one_by_one, rel=1e-6)
    assert cs.emulate(program(False), spines, 4).time < 0.99 * one_by_one
