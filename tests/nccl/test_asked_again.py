"""The same question again, and the same of another size: what is kept changes no answer, and files are read anew."""

import dataclasses

import pytest

import commsim as cs
from commsim.core.errors import InputError
from commsim.core.files.network_file import write_network
from commsim.engine import flow_paths
from commsim.engine.ways import carriers, closed_form_way
from commsim.engine.ways.proof_cache import PROOFS, TIMES
from commsim.nccl import call_costs, choice, tuning_table
from commsim.nccl.plans.plan_nccl import PLANS
from commsim.prediction.inputs import load_network
from commsim.prediction.machines_named import NETWORKS
from topologies import at_most

# All that is kept between questions.
KEPT = (NETWORKS, PLANS, PROOFS, TIMES, call_costs._PRICED, call_costs._LATEST, tuning_table._TABLES, choice._RANGES)
FABRIC = "dgx-h100@leaf_spine:machines=2,n_leaves=2,n_spines=2,uplinks_per_spine=4"


def clear():
    for cache in KEPT:
        cache.clear()
    carriers._kept.clear()


@pytest.fixture(autouse=True)
def nothing_is_known():
    clear()


def answer(network, question):
    """Return all of an answer, to the last bit."""
    collective, size, options = question
    one = cs.predict(collective, network, size, **options)
    bits = one.time.hex(), one.interval, one.hashes, one.method, one.link_bytes.tobytes(), one.bytes_on_wire.hex()
    return *bits, repr(one), [remark.text for remark in one.remarks]


def answers(network, questions):
    return [answer(network, question) for question in questions]


def test_answers_of_questions_asked_again_are_those_of_the_first_time():
    questions = [
        (collective, size, options)
        for collective in ("nccl_all_reduce", "nccl_all_gather:algorithm=ring", "nccl_all_to_all")
        for size in ("64KiB", "16MiB", "100MB")
        for options in ({}, {"n_ranks": 8}, {"routing": "ecmp", "seed": 5})
    ]
    first = []
    for question in questions:
        clear()
        first += answers(FABRIC, [question])
    assert answers(FABRIC, questions) == first
    assert answers(FABRIC, questions[::-1]) == first[::-1]


# Sizes of each choice, whose last loop is full or not, and that differ in the rate of a connection only.
SIZES = (2**16, 2**17, 2**20, 3 * 2**20, 2**26, 10**8, 2**29, 3 * 10**8, 2**20)


@pytest.mark.parametrize(
    ("machine", "collective", "sizes"),
    [
        *(("dgx-h100", f"nccl_{name}", SIZES) for name in ("all_reduce", "reduce_scatter", "all_to_all", "broadcast")),
        ("dgx-h100:net=roce", "nccl_all_reduce", SIZES[:4]), ("mi300x", "rccl_all_reduce", SIZES[:4]),
    ],
)  # fmt: skip
def test_a_size_has_the_answer_of_a_fresh_process_whatever_sizes_were_asked_before(machine, collective, sizes):
    fabric = f"{machine}@leaf_spine:machines=2,n_leaves=2,n_spines=2,uplinks_per_spine=4"
    questions = [(collective, size, {"hashes": 2}) for size in sizes]
    first = []
    for question in questions:
        clear()
        first.append(answer(fabric, question))
    clear()
    assert answers(fabric, questions) == first
    assert answers(fabric, questions[::-1]) == first[::-1]


def test_a_network_of_names_is_the_same_one_and_one_of_a_file_is_read_anew(tmp_path):
    assert load_network(FABRIC) is load_network(FABRIC)
    saved = tmp_path / "machine.json"
    rates = []
    for rate in ("100Gbps", "200Gbps"):
        write_network(load_network(f"nvswitch_host:n_gpus=4,n_nics=4,n_pcie_switches=2,nvlink={rate}"), saved)
        rates.append(load_network(f"{saved}@star:machines=2").bandwidth.tolist())
    assert rates[0] != rates[1]
    assert len(NETWORKS) == 1


def test_a_smaller_limit_refuses_what_a_larger_one_has_built():
    load_network(FABRIC)
    with at_most(10, 10), pytest.raises(InputError, match="at most 10 and 10 are built"):
        load_network(FABRIC)


def test_a_network_that_was_changed_is_planned_anew():
    whole = load_network(FABRIC)
    slow = dataclasses.replace(whole, bandwidth=whole.bandwidth / 2)
    times = [cs.predict("nccl_all_reduce", network, "1GiB").time for network in (whole, slow, whole)]
    assert times[0] == times[2] < times[1]


def test_hashes_share_the_simulation_on_the_network_of_reference(monkeypatch):
    """Cables among which a hash chooses are endless there, so that its time is that of all draws."""
    network = "dgx-h100:net=roce@leaf_spine:machines=4,n_leaves=2,n_spines=2,oversubscription=4"
    simulated, simulate = [], flow_paths.FlowPaths.simulate

    def counted(paths, *given, **options):
        simulated.append(float(paths.network.bandwidth.max()))
        return simulate(paths, *given, **options)

    monkeypatch.setattr(flow_paths.FlowPaths, "simulate", counted)
    shared = cs.predict("nccl_all_to_all", network, "64MiB", hashes=4)
    fastest = max(simulated)
    assert (simulated.count(fastest), len(simulated)) == (1, 5)
    clear()
    with monkeypatch.context() as patch:
        patch.setattr(closed_form_way, "digest_of_routes", lambda *_: object())  # no two draws are alike
        alone = cs.predict("nccl_all_to_all", network, "64MiB", hashes=4)
    assert len(simulated) == 13
    assert (alone.time.hex(), alone.hashes) == (shared.time.hex(), shared.hashes)
