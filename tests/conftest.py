"""What markers do: samples are drawn, and a test that needs a feature of the kernel is skipped where it is missing."""

import contextlib
import functools
import gc
import os
import random
import signal
from collections import defaultdict
from pathlib import Path

import pytest
from command_line import CommandLine
from front_indices import looked_at
from hypothesis import settings

# Of matrix products, before a library is imported that reads it: one for each worker of two, since threads that wait
# for each other's shares do so by spinning.
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

with contextlib.suppress(ModuleNotFoundError):  # which collectives there are is the same in every worker and file
    import commsim.packets.aggregated.systems  # noqa: F401

TESTS = Path(__file__).parent

# Files that are run again without the JIT (`make test-nojit`), by what follows `test_`: kernels run in them. A single
# test of another file bears the mark itself; one of these that needs the JIT is marked `jit`.
NOJIT_FILES = {
    "benchmarks": "queue_kernels",
    "collectives/dense": "all_to_all gather_scatter halving_doubling torus",
    "collectives/servers": "parameter_server",
    "core": "faults machine network_queries",
    "core/checking": "random_order",
    "core/data_order": "dependencies",
    "engine": "critical_path flow_contention physics predecessors_kernel queue_kernel max_min_kernel",
    "engine/recurrence": "lockstep_kernel ring_phase_kernel",
    "engine/symmetry": "symmetry_kernel",
    "live": "authentication",
    "packets": "pauses wheel_kernel",
    "pages": "interval_kernel study",
    "placement": "crux",
    "placement/clusters/contention": "contention_kernel",
    "ranking/synthesis": "greedy latency optimal",
    "ranking/synthesis/trees": "max_flow_kernel trimming",
    "routing": "merge_switches network_metrics routing routing_kernel search_kernel",
    "routing/in_parts": "valiant",
    "sparse": "bitmap form occupancy partition sparse_run sparse_vector",
    "sparse/collectives": "hitopk_comm ok_topk topk_a",
    "sweep": "plan",
    "switches": "arithmetic pool quantize slot_kernel",
}
NOJIT_PATHS = {TESTS / folder / f"test_{name}.py" for folder, names in NOJIT_FILES.items() for name in names.split()}

# Files that take more than five seconds, though no test of theirs is marked `slow`.
LONG_FILES = {
    "costmodel": "trusted_times",
    "diagnosis": "broken_logs",
    "diagnosis/causes": "causes_of_rows simulated",
    "emulation": "short_cuts",
    "placement/service": "posted_cluster",
    "symmetries": "less_capacity",
}
LONG_PATHS = {TESTS / folder / f"test_{name}.py" for folder, names in LONG_FILES.items() for name in names.split()}

# Of the cases that `make test` draws; another number tests others.
SEED = int(os.environ.get("COMMSIM_TEST_SEED", "1"))

# The first call of a kernel loads it, so no example has a time limit. The same commit has the same answer: only
# `make test-all` draws other examples each time.
settings.register_profile("drawn", settings.default, deadline=None, max_examples=15, derandomize=True, database=None)
settings.register_profile("deep", settings.default, deadline=None, max_examples=200, derandomize=False)

# Collections of Python's own threshold take a seventh of the time of all tests, those of the command line's a fortieth.
gc.set_threshold(200_000)

# A shell has what it starts in the background ignore SIGINT, and children inherit that:
# tests that interrupt them would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)


@functools.cache
def lacking(feature):
    from commsim.real.testbed import places as testbed
    from switch_model.bpf import requirements  # whether our own program loads is for the tests to say

    look = {
        "bpf": requirements.lacking,
        "namespaces": requirements.lacking_namespaces,
        "testbed": testbed.lacking,
        "losses": lambda: testbed.lacking() or ("" if can_lose(testbed) else "neither netem nor nftables"),
    }
    return look[feature]()


def can_lose(testbed):
    return testbed.has_netem() or testbed.has_nftables()


def pytest_configure(config):
    config.addinivalue_line("markers", "jit: in a file that runs without the JIT, but not this test")
    asked = config.option.markexpr
    settings.load_profile("deep" if "not deep" not in asked else "drawn")
    config.option.loadscopereorder = False  # of pytest-xdist, which would begin with the files that have most tests
    absent = [p for p in NOJIT_PATHS | LONG_PATHS if not p.exists()]
    if absent:
        raise pytest.UsageError(f"tests/conftest.py marks what does not exist: {absent}")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """Share the tests among two processes, as `make test` does, where `pytest` is alone on its command line."""
    option = config.option
    if "PYTEST_XDIST_WORKER" in os.environ:  # one of the two, which comes by here as well
        return
    is_alone = config.args_source == config.ArgsSource.TESTPATHS and "not slow" in option.markexpr
    if is_alone and getattr(option, "numprocesses", 2) is None and not (option.usepdb or option.collectonly):
        option.numprocesses, option.dist = 2, "loadfile"


def pytest_collection_finish():
    gc.freeze()  # tests and modules stay to the end: no collection looks at them again


def kind_of_tests(config):
    """Return what is asked for before the depth, such as ``nojit`` of ``nojit and not deep``."""
    return config.option.markexpr.partition(" and ")[0]


def pytest_ignore_collect(collection_path, config):
    """Leave files without a test of the one wanted kind unread: to import all takes longer than the few tests do."""
    kind = kind_of_tests(config)
    if kind not in ("mpi", "nojit") or not collection_path.name.startswith("test_"):
        return None
    listed = kind == "nojit" and collection_path in NOJIT_PATHS
    return None if listed or f"mark.{kind}" in collection_path.read_text(encoding="utf-8") else True


def pytest_itemcollected(item):
    if item.path in NOJIT_PATHS and not item.get_closest_marker("jit"):
        item.add_marker("nojit")


class Backwards(pytest.Dir):
    """A folder that is read from its end."""

    def collect(self):
        return list(super().collect())[::-1]


def pytest_collect_directory(path, parent):
    """Have every other worker begin at the end: each prepares half of the files, and finds the rest in the cache."""
    odd = os.environ.get("PYTEST_XDIST_WORKER", "gw0")[-1] in "13579"
    return Backwards.from_parent(parent, path=path) if odd else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark as deep the cases of sampled tests that are not drawn, for each test and value of `each` by itself.

    Long files come first: a worker that begins one when the other has no more leaves a core idle.
    """
    long = LONG_PATHS | {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (item.path not in long, item.path))
    cases = defaultdict(list)
    for item in items:
        if sample := item.get_closest_marker("sample"):
            one = item.callspec.params[sample.kwargs["each"]] if "each" in sample.kwargs else None
            cases[item.nodeid.partition("[")[0], str(one), sample.args[0]].append(item)
    for (test, one, n), found in cases.items():
        drawn = random.Random(f"{SEED} {test} {one}").sample(range(len(found)), min(n, len(found)))
        for number in set(range(len(found))).difference(drawn):
            found[number].add_marker("deep")


# Tests of which some should run each kernel.
WHOLE_NOJIT = ("nojit", "nojit and not deep")
# Without the JIT: kernels that were defined, and those of them that ran.
DEFINED, CALLED = set(), set()


def record_calls(function, options):
    """Stand for ``jit._kernel`` without the JIT: the plain function, whose calls are recorded and indices looked at."""
    name = f"{function.__module__}.{function.__qualname__}"
    DEFINED.add(name)
    if "from_front" in options and function.__closure__ is None:
        function = looked_at(function)

    @functools.wraps(function)
    def recorded(*args):
        CALLED.add(name)
        return function(*args)

    return recorded


if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
    from commsim.core import jit

    jit._ignore_overflow()
    jit._kernel = record_calls


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist, which -p no:xdist leaves out
def pytest_testnodedown(node):
    DEFINED.update(getattr(node, "workeroutput", {}).get("defined", ()))
    CALLED.update(getattr(node, "workeroutput", {}).get("called", ()))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    """Say at the end of a whole run without the JIT which kernels never ran: they might not work as plain Python."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput.update(defined=sorted(DEFINED), called=sorted(CALLED))
    elif session.config.option.markexpr in WHOLE_NOJIT and not session.config.option.keyword and exitstatus == 0:
        never = sorted(DEFINED - CALLED)
        if never:
            print("\nKernels that no test runs without the JIT:", *never, sep="\n  ")


def pytest_runtest_setup(item):
    for marker in item.iter_markers("needs_kernel"):
        for feature in marker.args:
            why = lacking(feature)
            if why:
                pytest.skip(f"no {feature}: {why}")


@pytest.fixture(name="commsim")
def command_line(capsys, tmp_path):
    """Return the command line, run in this process; it keeps what it printed."""
    return CommandLine(capsys, tmp_path)


@pytest.fixture(scope="session")
def calibrated(tmp_path_factory):
    """Return what ``commsim calibrate`` of two ranks over MPI printed, and the network file that it wrote."""
    from under_mpiexec import under_mpiexec

    network = tmp_path_factory.mktemp("calibrated") / "here.toml"
    return under_mpiexec(2, "-m", "commsim", "calibrate", "--passes", "1", "-o", str(network)), network


@pytest.fixture
def forgets(monkeypatch):
    """Return a function of registries: what the test registers there is forgotten after it."""

    def forgets(*registries):
        for registry in registries:
            len(registry)  # imports those of its package, which stay
            monkeypatch.setattr(registry, "_entries", dict(registry._entries))

    return forgets
