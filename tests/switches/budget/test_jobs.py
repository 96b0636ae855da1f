"""What fits into a switch, against what public programs fit into it, and what is said when something does not."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from switch_model.budget import HARDWARE
from switch_model.budget.chip import Hardware
from switch_model.budget.jobs import budget
from switch_model.budget.layout_of_jobs import Budget
from switch_model.budget.register_layout import CONTROL_STAGES, register_layout
from switch_model.system import System
from switch_model.systems import SYSTEMS

GBPS = 1e9 / 8
TOFINO = HARDWARE["tofino_1"].build()


def udp(k: int = 256, **more: int) -> System:
    return SYSTEMS["switchml_udp"].build(elements_per_packet=k, **more)


def rdma(k: int = 256, **more: int) -> System:
    return SYSTEMS["switchml_rdma"].build(elements_per_packet=k, **more)


@pytest.mark.parametrize("name", list(HARDWARE))
def test_every_switch_has_sources_and_says_what_is_assumed(name: str) -> None:
    hardware = HARDWARE[name].build()
    assert hardware.name == name
    assert any("assumption" in source for source in hardware.sources)
    assert any("p4c" in source for source in hardware.sources)
    assert HARDWARE[name].build(pipes=2).pipes == 2


def test_memory_of_a_pipe_is_12_stages_of_80_blocks() -> None:
    assert TOFINO.sram_bytes * 8 == 120 * 2**20


def test_arrays_hold_as_many_entries_as_public_programs_found() -> None:
    """22,528 pairs is a limit that p4app-switchML states; another program says 20,480 pass and 24,576 do not."""
    pairs = TOFINO.most_entries(8)
    assert pairs == 22_528
    assert 20_480 <= pairs < 24_576
    assert 1 << (pairs.bit_length() - 1) == 16_384
    assert TOFINO.most_entries(4) >= 40_000  # ATP's


def test_a_fourth_array_fits_and_one_block_more_does_not() -> None:
    most = TOFINO.most_entries(8)
    assert TOFINO.arrays_per_stage * TOFINO.blocks(most, 8) <= TOFINO.register_blocks
    assert TOFINO.arrays_per_stage * TOFINO.blocks(most + 1, 8) > TOFINO.register_blocks


@pytest.mark.parametrize(("k", "passes", "adding", "reading"), [(64, 1, 0, 1), (256, 4, 3, 7)])
def test_switchml_recirculates_as_its_controller_says(k: int, passes: int, adding: int, reading: int) -> None:
    layout = register_layout(udp(k), TOFINO)
    assert (layout.n_passes, layout.pipes, layout.arrays) == (passes, passes, 32)
    assert (layout.adding_recirculations, layout.reading_recirculations) == (adding, reading)
    assert layout.stages(TOFINO) == TOFINO.stages


def test_atp_takes_two_passes_in_one_pipe_and_its_published_memory() -> None:
    found = budget(SYSTEMS["atp"].build(), TOFINO)
    layout = found.layout
    assert (layout.n_passes, layout.pipes, layout.arrays, layout.control_arrays) == (2, 1, 31, 4)
    assert found.n_entries == 40_000
    assert found.n_entries * 4 * (layout.arrays + layout.control_arrays) == 5_600_000
    assert (layout.adding_recirculations, layout.reading_recirculations, found.looped_ports) == (1, 0, 0)
    assert found.value_bytes == 20_000 * 248


@pytest.mark.parametrize(("k", "slots", "kib"), [(32, 128, 32), (32, 512, 128), (256, 128, 256), (256, 512, 1024)])
def test_memory_of_values_is_two_versions_of_k_values_in_each_slot(k: int, slots: int, kib: int) -> None:
    assert budget(udp(k), TOFINO, pool_size=slots).value_bytes == kib * 1024


def test_the_registers_that_p4app_allocates_are_4_mib_in_each_pipe() -> None:
    found = budget(udp(64), TOFINO, pool_size=8192)
    assert found.n_entries == 16_384
    assert found.n_entries * found.layout.entry_bytes * found.layout.arrays == found.value_bytes == 4 * 2**20
    assert found.sram_bytes >= found.value_bytes


def test_folding_pipes_costs_their_ports() -> None:
    folded, single = budget(udp(256), TOFINO), budget(udp(64), TOFINO)
    assert (folded.looped_ports, folded.host_ports, folded.most_workers) == (48, 16, 16)
    assert (single.looped_ports, single.host_ports, single.most_workers) == (0, 64, 16)


def test_a_second_job_shares_the_ports_through_which_results_are_read() -> None:
    """Of the loads on pipe 0 the last is the largest: seven lanes of 128 bytes, and 64 bytes beside them."""
    one, two = budget(rdma(), TOFINO, 1), budget(rdma(), TOFINO, 2)
    packets = rdma().line_rate(100 * GBPS) / 256
    assert one.loops.share == 1.0
    assert one.loops.ports_for_line_rate == 0
    assert two.loops.share == pytest.approx(100 * GBPS / (2 * packets * (7 * 128 + 64)))
    assert two.loops.ports_for_line_rate > 0
    assert two.elements_per_s == pytest.approx(two.loops.share * rdma().line_rate(100 * GBPS))


def test_what_comes_back_is_counted_byte_by_byte() -> None:
    packets = udp(64).line_rate(100 * GBPS) / 64
    small = budget(udp(64), TOFINO, n_workers=8).loops
    assert (small.adding, small.reading) == (0.0, pytest.approx(packets * (128 + 64)))
    packets = udp(256).line_rate(100 * GBPS) / 256
    large = budget(udp(256), TOFINO, n_workers=8).loops
    assert large.adding == pytest.approx(8 * packets * (768 + 512 + 256 + 3 * 64))
    assert large.reading == pytest.approx(packets * (128 * 28 + 7 * 64))


def test_jobs_of_small_packets_spread_over_the_pipes() -> None:
    four, five = budget(udp(64), TOFINO, 4), budget(udp(64), TOFINO, 5)
    assert (four.n_groups, four.jobs_per_group, five.jobs_per_group) == (4, 1, 2)
    assert five.n_entries == 2 * four.n_entries


def test_slower_workers_share_a_port() -> None:
    assert budget(udp(64), TOFINO, n_workers=32, bandwidth=25 * GBPS).most_workers == 32
    with pytest.raises(InputError, match="ports of 100 Gb/s, got hosts of 400 Gb/s"):
        budget(udp(64), TOFINO, bandwidth=400 * GBPS)
    assert HARDWARE["tofino_2"].build().split(100 * GBPS) == 4


@pytest.mark.parametrize(
    ("system", "asked", "message"),
    [
        (udp(512), {}, "need 8 passes of 64; switchml_udp on tofino_1 has 4 pipes, so at most 256 elements fit"),
        (udp(), {"pool_size": 12_000}, "need 24000 entries of each register array, which has 22528.*: a pool of 11264"),
        (udp(), {"pool_size": 8000, "n_jobs": 2}, "a pool of 5632 slots, or 1 job, or 128 elements per packet"),
        (udp(), {"n_workers": 17}, "1 job of 17 workers in a pipe of 16 ports of 100 Gb/s.*fit.*: 16 workers"),
        (udp(64), {"n_jobs": 9}, "3 jobs of 8 workers.*fit.*: 8 jobs, or 5 workers"),
        (udp(64), {"n_workers": 33, "bandwidth": 25 * GBPS}, "at most 32 in each job.*fit.*: 32 workers"),
        (rdma(), {"pool_size": 4096}, "512 queue pairs, one for each of its messages of 4 packets.*2048 slots"),
        (
            SYSTEMS["atp"].build(),
            {"pool_size": 30_000},
            "for all jobs need 60000.*45056.*: a pool of 22528 slots, or 31",
        ),
        (SYSTEMS["atp"].build(elements_per_packet=31), {"pool_size": 45_057}, "45057 entries.*a pool of 45056 slots"),
        (SYSTEMS["atp"].build(), {"n_workers": 16}, "16 workers and a server.*: 15 workers"),
        (SYSTEMS["atp"].build(elements_per_packet=100), {}, "at most 62 elements fit"),
        (udp(), {"pool_size": 10**6, "n_jobs": 100}, "no single change makes it fit"),
        (SYSTEMS["sharp"].build(), {}, "adds floats of 4 bytes; the registers of tofino_1 add int32 only"),
        (udp(), {"n_jobs": 0}, "at least 1 of jobs, got 0"),
        (udp(), {"pool_size": 0}, "at least 1 of slots, got 0"),
    ],
)
def test_asking_for_more_than_fits_says_what_would(system: System, asked: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        budget(system, TOFINO, **asked)


@given(
    k=st.sampled_from([32, 64, 128, 256]),
    slots=st.integers(1, 40_000),
    jobs=st.integers(1, 12),
    workers=st.integers(1, 40),
    hardware=st.sampled_from([TOFINO, HARDWARE["tofino_2"].build(), HARDWARE["tofino_1"].build(pipes=2)]),
)
def test_what_is_said_to_fit_fits_and_one_more_does_not(
    k: int, slots: int, jobs: int, workers: int, hardware: Hardware
) -> None:
    import re

    asked = {"n_jobs": jobs, "n_workers": workers, "pool_size": slots}
    try:
        found = budget(udp(k), hardware, **asked)
    except InputError as error:
        for name, pattern in (("pool_size", r"a pool of (\d+) slot"), ("n_jobs", r": .*?(\d+) jobs?(?:,|$)"),
                              ("n_workers", r"fit.* (\d+) workers?(?:,|$)")):  # fmt: skip
            if said := re.search(pattern, str(error).partition("what would fit")[2]):
                most = int(said[1])
                assert isinstance(budget(udp(k), hardware, **(asked | {name: most})), Budget)
                with pytest.raises(InputError):
                    budget(udp(k), hardware, **(asked | {name: most + 1}))
        return
    assert found.layout.stages(hardware) <= hardware.stages
    assert found.sram_bytes <= hardware.sram_bytes
    assert found.layout.blocks(found.n_entries, hardware) <= hardware.stages * hardware.register_blocks
    assert 0 < found.loops.share <= 1


def test_a_chip_of_few_stages_adds_less_in_a_pass() -> None:
    small = dataclasses.replace(TOFINO, name="small", stages=CONTROL_STAGES + 2)
    assert register_layout(udp(16), small).n_passes == 1
    assert register_layout(udp(17), small).n_passes == 2
    with pytest.raises(InputError, match="4 of them without values"):
        register_layout(udp(1), dataclasses.replace(TOFINO, stages=CONTROL_STAGES))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pipes": 0}, "pipes must be at least 1, got 0"),
        ({"port_rate": 0.0}, "rates must be positive"),
        ({"register_blocks": 7}, "must fit into register_blocks"),
        ({"sram_blocks": 40}, "and these into sram_blocks, got 48 and 40"),
    ],
)
def test_switches_that_cannot_be_are_refused(change: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        dataclasses.replace(TOFINO, **change)  # type: ignore[arg-type]
