"""Sweeps over Ray's tasks, with a stand-in for Ray; the last test takes Ray itself where it is installed."""

import importlib.util
import sys
from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from commsim.core.errors import BackendError, InputError
from commsim.sweep.executors import open_pool
from commsim.sweep.ray_cluster import RayExecutor
from commsim.sweep.run_sweep import run_sweep
from commsim.sweep.table import read_table

pytest.importorskip("pyarrow")


class WorkerCrashedError(Exception):
    """What Ray raises under this name."""


class StandIn:
    """As much of Ray as the executor calls: tasks run at once; those that hold a lethal point end their worker."""

    def __init__(self):
        self.asked, self.ended, self.options, self.lethal = None, 0, None, frozenset()

    def is_initialized(self):
        return self.asked is not None

    def init(self, **options):
        if options.get("address") == "ray://nowhere:1":
            raise ConnectionError("no answer\nand a long story")
        self.asked = options

    def shutdown(self):
        self.asked, self.ended = None, self.ended + 1

    def cluster_resources(self):
        return {"CPU": 3.0, "memory": 1e9}

    def remote(self, **options):
        self.options = options
        return lambda function: SimpleNamespace(remote=lambda *args: self._task(function, args))

    def _task(self, function, args):
        future = Future()
        chunk = args[1][0] if args[1] else None
        if self.lethal & set(getattr(chunk, "orders", ())):
            future.set_exception(WorkerCrashedError("the worker died"))
        else:
            future.set_result(function(*args))
        return SimpleNamespace(future=lambda: future)


@pytest.fixture
def ray(monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    stand_in = StandIn()
    monkeypatch.setitem(sys.modules, "ray", stand_in)
    return stand_in


def test_ray_gives_the_table_of_one_process_and_its_cluster_ends(small, tmp_path, ray):
    run_sweep(small, tmp_path / "serial", "serial")
    assert run_sweep(small, tmp_path / "ray", "ray").n_failed == 0
    assert read_table(tmp_path / "ray").equals(read_table(tmp_path / "serial"), check_metadata=True)
    assert ray.ended == 1
    assert ray.options["max_retries"] == 0  # a lethal point is tried as often as the driver says


def test_a_point_that_ends_its_worker_is_a_row_with_its_error(small, tmp_path, ray):
    ray.lethal = frozenset({7})
    done = run_sweep(small, tmp_path / "ray", "ray")
    assert (done.n_done, done.n_failed) == (24, 1)
    (failed,) = [row for row in read_table(tmp_path / "ray").to_pylist() if row["error"]]
    assert failed["order"] == 7
    assert "workers died while they computed only this point: WorkerCrashedError" in failed["error"]


@pytest.mark.parametrize(
    ("name", "variable", "asked"),
    [("ray://head:10001", "", "ray://head:10001"), ("ray", "head:6379", "head:6379"), ("ray", "", None)],
)
def test_a_cluster_that_runs_is_used_as_it_is(ray, monkeypatch, name, variable, asked):
    if variable:
        monkeypatch.setenv("RAY_ADDRESS", variable)
    with open_pool(name, 2) as pool:
        assert pool.n_workers == 3  # the processors of the cluster
        assert ray.asked.get("address") == asked
        assert ray.asked.get("num_cpus") == (None if asked else 2)  # Ray refuses it for a cluster that runs


def test_the_cluster_of_a_program_that_has_one_is_left_running(ray):
    ray.init(address="local")
    with open_pool("ray", 2) as pool:
        assert pool.submit(int, "5").result() == 5
    assert (ray.asked, ray.ended) == ({"address": "local"}, 0)


def test_a_cluster_that_does_not_answer_is_one_line(ray):
    with pytest.raises(BackendError, match=r"^no Ray cluster answers at ray://nowhere:1: no answer$"):
        RayExecutor("ray://nowhere:1", 2)


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"pip install 'commsim\[ray\]'"), open_pool("ray", 1):
        pass


def test_an_address_without_a_port_is_refused(ray):
    with pytest.raises(InputError, match="ray or ray://HOST:PORT, got 'ray://head'"), open_pool("ray://head", 1):
        pass


if importlib.util.find_spec("ray") is not None:  # which is in no group of ours: its wheel is 79 MB

    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore")
    def test_ray_itself_gives_the_table_of_one_process(small, tmp_path):
        run_sweep(small, tmp_path / "serial", "serial")
        assert run_sweep(small, tmp_path / "ray", "ray", jobs=1).n_failed == 0
        assert read_table(tmp_path / "ray").equals(read_table(tmp_path / "serial"), check_metadata=True)
