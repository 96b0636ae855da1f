"""A new topology and a new collective are two files each, the module and its test; everything else sees them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import commsim

ROOT = Path(commsim.__file__).parent.parent
SHIPPED = ("commsim", "collectives", "topologies", "switch_model")
COPIED = (*SHIPPED, "tests", "benchmarks", "docs", "examples", "README.md", "pyproject.toml")

OF_CONTRACTS = (
    "tests/topologies/test_contract.py", "tests/topologies/test_wheel.py", "tests/collectives/test_contract.py",
    "tests/collectives/test_relay.py",
)  # fmt: skip

WHEEL = '''
"""The wheel: a ring of switches around a hub."""

import numpy as np

from commsim.core.network import Network, both_ways, kinds, node_names
from commsim.core.units import Bandwidth, Seconds

from . import LINK_BANDWIDTH, LINK_LATENCY, require_at_least, require_buildable, topology


@topology
def wheel(n_hosts: int, bandwidth: Bandwidth = LINK_BANDWIDTH, latency: Seconds = LINK_LATENCY) -> Network:
    """Wheel: a switch for every host, each cabled to the next one and all to a hub.

    Parameters
    ----------
    n_hosts : int
        At least 2.
    bandwidth : float, bytes/s
        Of every link.
    latency : float, s
        Of every link.

    Returns
    -------
    Network
        Hosts ``h0 …``, ``rim0 …`` and ``hub0``; ``6 n_hosts`` links.

    Raises
    ------
    InputError
        If there are fewer hosts than 2, or too many.

    References
    ----------
    Harary, "Graph theory", 1969, chapter 5.
    """
    require_at_least("wheel", 2, n_hosts=n_hosts)
    require_buildable("wheel", 2 * n_hosts + 1, 6 * n_hosts)
    rim = n_hosts + np.arange(n_hosts)
    hub = np.full(n_hosts, 2 * n_hosts)
    src, dst = both_ways(np.r_[rim - n_hosts, rim, rim], np.r_[rim, np.roll(rim, -1), hub])
    names = node_names(h=n_hosts, rim=n_hosts, hub=1)
    return Network("wheel", names, kinds(n_hosts, n_hosts + 1), src, dst, bandwidth, latency)
'''

WHEEL_TEST = """
from commsim.routing.network_metrics import measure
from topologies.wheel import wheel


def test_the_hub_is_one_switch_away_from_all():
    assert measure(wheel(8)).diameter == 4
"""

RELAY = '''
"""An all-reduce in which everybody tells the root, and hears the sum from it."""

import numpy as np

from commsim.core.cost import LogGP
from commsim.core.program import Program
from commsim.core.schedule import Schedule

from . import collective


def relay_cost(n_ranks: int, size: float, link: LogGP) -> float:
    """All messages share the port of rank 0, which also adds them up."""
    others = n_ranks - 1
    there = link.o + others * (size / link.B + link.gamma * size) + link.L
    return there + others * (link.o + size / link.B) + link.L if others else 0.0


@collective("all_reduce", cost=relay_cost)
def relay_all_reduce(n_ranks: int) -> Schedule:
    """All-reduce by way of rank 0: p o + (p-1)(2S/B + gamma S) + 2L seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.

    Returns
    -------
    Schedule
        2(p-1) messages.

    References
    ----------
    None needed.
    """
    p = Program(n_ranks, n_chunks=1)
    others = np.arange(1, n_ranks)
    p.reduce(0, src=others, dst=0)
    p.copy(0, src=0, dst=others)
    return p.build()
'''

RELAY_TEST = """
from collectives.relay import relay_all_reduce


def test_it_is_two_hops():
    assert relay_all_reduce(5).n_hops == 2
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the source tree, kernels included, with the four new files."""
    folder = tmp_path_factory.mktemp("tree")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name)  # keeps times, so that compiled kernels are still valid
        else:
            shutil.copy2(ROOT / name, folder / name)
    before = {path for path in folder.rglob("*") if path.is_file()}
    for path, text in {
        "topologies/wheel.py": WHEEL,
        "tests/topologies/test_wheel.py": WHEEL_TEST,
        "collectives/relay.py": RELAY,
        "tests/collectives/test_relay.py": RELAY_TEST,
    }.items():
        assert folder / path not in before
        (folder / path).write_text(text.lstrip())
    return folder


def run(tree, *argv):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, *argv], cwd=tree, capture_output=True, text=True, check=False,
        env=environment | {"PYTHONPATH": str(tree)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_command_line_lists_shows_and_runs_them(tree):
    lines = (
        "topo list", "topo show wheel:n_hosts=16 --draw wheel.svg", "schedule list",
        "run --collective relay_all_reduce --topology wheel:n_hosts=8",
        "run --operation all_reduce --topology wheel:n_hosts=8",
    )  # fmt: skip
    code = (  # in one process, which imports once
        "import sys; from commsim.cli import main\n"
        "for line in sys.argv[1:]: assert main(line.split()) == 0, line; print('=====')"
    )
    topologies, shown, schedules, out, of_operation, _ = run(tree, "-c", code, *lines).split("=====\n")
    assert "wheel: n_hosts [bandwidth] [latency]" in topologies
    assert "17 switches" in shown
    assert "rim15: switch" in (tree / "wheel.svg").read_text()
    assert "relay_all_reduce  [all_reduce]" in schedules
    assert "relay_all_reduce on wheel:n_hosts=8" in out
    assert "relay_all_reduce" in of_operation


def test_the_checker_proves_the_collective(tree):
    out = run(tree, "-m", "commsim", "schedule", "check", "relay_all_reduce", "--ranks", "9")
    assert "relay_all_reduce on 9 ranks: correct, by exact check of 16 transfers" in out


@pytest.mark.slow
def test_the_contract_tests_of_both_and_their_own_tests_pass(tree):
    out = run(
        tree, "-m", "pytest", "-q", "-m", "", "-p", "no:cacheprovider", *OF_CONTRACTS, "-k", "wheel or relay",
    )  # fmt: skip
    n_passed = int(out.split(" passed")[0].split()[-1])
    assert n_passed > 33 + 2 + 2  # 1 to 33 ranks; two large numbers of them; the tests of their own; and more


@pytest.mark.deep
@pytest.mark.slow
def test_the_flow_engine_is_held_to_the_cost_that_the_collective_states(tree):
    out = run(
        tree,
        "-m",
        "pytest",
        "-q",
        "-m",
        "",
        "-p",
        "no:cacheprovider",
        "tests/engine/test_flow_closed_forms.py",
        "-k",
        "relay",
    )
    assert "1 passed" in out


@pytest.mark.deep
@pytest.mark.slow
def test_a_collective_that_breaks_its_promise_fails_the_contract(tree):
    path = tree / "collectives" / "relay.py"
    path.write_text(RELAY.lstrip().replace("p.copy(0, src=0, dst=others)", "p.copy(0, src=0, dst=others[1:])"))
    try:
        with pytest.raises(AssertionError, match=r"ScheduleError: relay_all_reduce: rank . ends with chunk 0 wrong"):
            run(
                tree, "-m", "pytest", "-q", "-m", "", "-x", "-p", "no:cacheprovider", "tests/collectives", "-k", "relay"
            )
    finally:
        path.write_text(RELAY.lstrip())


@pytest.mark.deep
@pytest.mark.slow
def test_pages_and_their_tables_need_no_change(tree):
    run(
        tree, "-m", "pytest", "-q", "-m", "", "-p", "no:cacheprovider", "tests/docs", "tests/benchmarks/test_tables.py",
        "-k", "tutorial or cluster_engineer or up_to_date or one_row",
    )  # fmt: skip
    code = "from benchmarks.house.tables import pages, page; print(*map(page, pages()))"
    built = run(tree, "-c", code)
    assert "`relay_all_reduce`" in built
    assert "`wheel`" in built
