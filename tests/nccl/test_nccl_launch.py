"""What runs where a collective of NCCL is named: NCCL's choice at each size, its switches, its bytes on the wire."""

from dataclasses import replace

import pytest

from collectives.nccl.call import NEWEST
from collectives.nccl.launch import NcclParameters
from collectives.nccl.rules import cut_call
from commsim.core.errors import InputError
from commsim.core.remark import ASSUMED
from commsim.nccl.of_network import NcclOptions, setting_of
from commsim.nccl.prediction import call_of
from commsim.nccl.tuning_table import Cell, cell_time, cells
from commsim.prediction.build import prepare

H100 = "dgx-h100"


@pytest.mark.parametrize("size", [2**10, 2**18, 2**22, 2**28])
def test_algorithm_and_protocol_are_those_of_the_least_estimate(size):
    ready = prepare("nccl_all_reduce", H100)
    setting = setting_of(ready.network, ready.placement, 8, NcclOptions())
    times = {(c.algorithm, c.protocol): cell_time(setting, "all_reduce", c, size) for c in cells(setting, "all_reduce")}
    best = min((time, cell) for cell, time in times.items() if time is not None)[1]
    parameters = ready.at(size).parameters
    assert (parameters["algorithm"], parameters["protocol"]) == best


def test_what_is_given_is_what_runs():
    ready = prepare("nccl_all_reduce:algorithm=tree,protocol=ll128,channels=6", H100).at(2**26)
    assert [ready.parameters[key] for key in ("algorithm", "protocol", "channels")] == ["tree", "ll128", 6]
    assert ready.schedule.n_helpers == 0


@pytest.mark.parametrize(("bandwidth", "is_slow"), [("10Gbps", True), ("400Gbps", False)])
@pytest.mark.parametrize("size", [2**14, 2**15, 3 * 2**14, 2**18])
def test_the_schedule_is_cut_as_the_closed_form_is(bandwidth, is_slow, size):
    """Rings of 12 GB/s and less have fewer threads, so that a call has a channel from 16 KiB on, not from 32."""
    ready = prepare("nccl_all_reduce:algorithm=ring,protocol=simple", f"dgx-h100@star:machines=2,bandwidth={bandwidth}")
    call = call_of(ready.launch.site, "all_reduce", Cell("ring", "simple", 0.0, 0.0), size)
    built = NcclParameters("nccl_all_reduce", "all_reduce", 16, **ready.launch.parameters(size)).call()
    assert replace(built, heads=0) == call  # heads are those of NVLink SHARP
    assert len(cut_call(built)) == max(1, size // 2 ** (14 if is_slow else 15))
    assert ready.at(size).schedule.n_transfers == 2 * 15 * sum(part.n_slices for part in cut_call(call))


@pytest.mark.parametrize(("protocol", "on_wire"), [("ll", 2.0), ("ll128", 128 / 120), ("simple", 1.0)])
def test_flags_of_the_protocol_are_on_the_wire(protocol, on_wire):
    """A ring sends 2(p-1) parts of S/p from every rank, and each byte with the flags beside it."""
    result = prepare(f"nccl_all_reduce:algorithm=ring,protocol={protocol}", H100).predict(2**26)
    assert result.bytes_on_wire == pytest.approx(2 * 7 * 2**26 * on_wire, rel=0.01)


@pytest.mark.parametrize(("algorithm", "n_helpers"), [("collnet_chain", 1), ("collnet_direct", 1), ("nvls", 3)])
def test_with_sharp_on_the_fabric_adds_what_the_machines_have(algorithm, n_helpers):
    """One switch of the fabric, and with NVLink SHARP one of each machine; a NIC carries the bytes once."""
    question = f"nccl_all_reduce:algorithm={algorithm}", "dgx-h100:sharp=on@star:machines=2"
    ready = prepare(*question).at(2**26)
    helpers = ready.placement.nodes[16:]
    assert len(helpers) == n_helpers
    assert ready.network.aggregates[helpers].all()
    assert ready.network.machine[helpers[-1]] == -1
    crossed = prepare(*question).predict(2**30)
    assert crossed.time > 2**30 / (8 * 50e9)
    if algorithm == "nvls":  # a chain has all bytes on each GPU, and direct heads give 7/4 of them: 163 GB/s by NCCL
        assert crossed.time < prepare("nccl_all_reduce:algorithm=ring", question[1]).predict(2**30).time


def test_without_sharp_the_fabric_adds_nothing():
    assert "collnet" not in prepare("nccl_all_reduce", "dgx-h100@star:machines=2").at(2**30).parameters["algorithm"]
    with pytest.raises(InputError, match=r"network that reduces \(SHARP\), as machines with sharp=on have"):
        prepare("nccl_all_reduce:algorithm=collnet_chain", "dgx-h100@star:machines=2").at(2**26)
    with pytest.raises(InputError, match="sharp must be one of on, off, got 'yes'"):
        prepare("nccl_all_reduce", "dgx-h100:sharp=yes@star:machines=2")


def test_the_switch_of_the_machine_adds():
    ready = prepare("nccl_all_reduce:algorithm=nvls", H100).at(2**26)
    (helper,) = ready.placement.nodes[8:]
    assert ready.network.aggregates[helper]
    assert ready.network.machine[helper] == ready.network.machine[ready.placement.nodes[0]]


def test_nvlink_sharp_sends_less_than_a_ring_and_both_stay_below_what_the_links_carry():
    """A GPU sends S(1 + 1/p) to the switch, and 2 S (p-1)/p round a ring; whose GPUs they are is not said here."""
    size, rate, bare = 2**30, 450e9, "nvswitch_host:nvls=true"
    ring, nvls = (
        prepare(f"nccl_all_reduce:algorithm={a},protocol=simple", bare).predict(size) for a in ("ring", "nvls")
    )
    assert 2 * 7 / 8 * size / rate < ring.time < 1.1 * 2 * 7 / 8 * size / rate
    assert 9 / 8 * size / rate < nvls.time < 1.1 * 9 / 8 * size / rate


@pytest.mark.parametrize("engine", ["flow", "packet", "alpha-beta"])
def test_every_engine_runs_what_is_launched(engine):
    result = prepare("nccl_all_gather:channels=2", "star:n_hosts=4").predict(2**16, engine=engine)
    assert result.time > 3 / 4 * 2**16 / 12.5e9


def test_a_chunk_is_two_slices_so_that_reducing_overlaps_sending():
    ready = prepare("nccl_all_reduce:algorithm=ring,protocol=simple,channels=1", "star:n_hosts=4").at(2**23)
    first = next(ready.schedule.rounds())
    assert ((first["src"] == 0) & (first["channel"] == 0)).sum() == 2


@pytest.mark.parametrize(
    ("spec", "network", "message"),
    [
        ("nccl_all_reduce:version=2.40", H100, r"the rules of NCCL 2.40 are not known; version is 2\.8 to 2\.32"),
        ("nccl_all_reduce:algorithm=nvls", "dgx-a100", "needs a switch in each machine that reduces"),
        ("nccl_all_reduce:algorithm=nvls", "dgx-h100@star:machines=2", r"\(SHARP\), .*; take nvls_tree \(NVLS in each"),
        ("nccl_all_reduce:algorithm=collnet", "star:n_hosts=4", "needs a switch in the network that reduces"),
        ("nccl_all_reduce:algorithm=pat", H100, "NCCL has no all_reduce with algorithm=pat"),
        ("nccl_all_reduce:protocol=ll,algorithm=nvls", H100, "algorithm=nvls has protocol=simple only"),
        ("nccl_all_reduce:channels=65", H100, r"has 1\.\.64 channels, got channels=65"),
        ("nccl_all_to_all:version=2.24", "gb300-nvl72", "NCCL 2.24 does not know Blackwell GPUs; version is 2.25 or"),
    ],
)
def test_what_cannot_run_is_refused(spec, network, message):
    with pytest.raises(InputError, match=message):
        prepare(spec, network).predict(2**20)


def test_run_says_what_was_assumed_of_machines_that_say_nothing():
    (said,) = (note for note in prepare("nccl_all_reduce", "star:n_hosts=8").notes if note.code == ASSUMED)
    assert said.details.startswith("GPUs are Hopper; CPUs are Intel's; NCCL takes a NIC to have")
    assert "--" not in said.details  # flags of explain


def test_gpus_that_nobody_names_are_of_a_generation_that_the_release_knows():
    (said,) = (note for note in prepare("nccl_all_reduce:version=2.12", "star:n_hosts=8").notes if note.code == ASSUMED)
    assert said.details.startswith("GPUs are Ampere; ")


def test_a_machine_that_says_what_it_has_leaves_channels_to_assume():
    (said,) = (note for note in prepare("nccl_all_reduce", H100).notes if note.code == ASSUMED)
    assert "Hopper" not in said.details
    assert "rings and trees have 12 channels of 30 GB/s" in said.details


def test_version_any_is_the_newest_release_with_an_interval_over_all():
    topology = "dgx-a100@star:machines=4"
    newest, old, unknown = (
        prepare(f"nccl_all_reduce:version={version}", topology).predict(2**22) for version in ("2.30", "2.17", "any")
    )
    assert unknown.time == newest.time
    assert unknown.interval[0] <= min(newest.interval[0], old.interval[0])
    assert unknown.interval[1] >= max(newest.interval[1], old.interval[1])
    with pytest.raises(InputError, match=r"version must be MAJOR.MINOR of NCCL, 2.8 to 2.32, got 'new' \(any, where"):
        prepare("nccl_all_reduce:version=new", topology)


@pytest.mark.parametrize(
    ("rate", "whose"), [(200, "25 GB/s of the network;"), (800, "48 GB/s of the machine's NIC and PCIe links;")]
)
def test_the_rate_of_a_nic_is_that_of_the_network_or_of_the_machine_itself_where_that_is_less(rate, whose):
    notes = prepare("nccl_all_reduce", f"{H100}@star:machines=2,bandwidth={rate}Gbps").notes
    (said,) = (note for note in notes if note.code == ASSUMED)
    assert whose in said.details


def test_a_release_that_nobody_says_is_an_assumption():
    def said(question):
        return [note for note in prepare(question, H100).notes if note.code == ASSUMED and "NCCL is " in note.details]

    (note,) = said("nccl_all_reduce")
    assert note.details.endswith(f"; NCCL is {NEWEST[0]}.{NEWEST[1]} (version=)")
    assert not said("nccl_all_reduce:version=2.27")


@pytest.mark.parametrize(
    ("call", "is_told"),
    [("", True), (":algorithm=ring", True), (":protocol=simple", True), (":algorithm=ring,protocol=simple", False)],
)
def test_what_nccl_would_choose_is_told_unless_all_of_it_was_asked_for(call, is_told):
    notes = prepare(f"nccl_all_reduce{call}", H100).notes
    assert [note.code for note in notes].count("library-choice") == is_told


def test_of_an_all_to_all_nccl_chooses_no_algorithm():
    assert "library-choice" not in [note.code for note in prepare("nccl_all_to_all", H100).notes]
