import os
import subprocess
import sys

PROGRAM = """
from commsim.core.jit import compile_all
from commsim.core.routes.routing import find_routes
from commsim.inputs import load_network
compile_all()
find_routes(load_network("star:n_hosts=3"), [0], [1])
from commsim.core.routes.routing_kernel import walk_routes
print(sum(walk_routes.stats.cache_hits.values()), sum(walk_routes.stats.cache_misses.values()))
"""


def test_the_first_run_compiles_with_a_message_and_a_second_process_uses_the_cache(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": "0"}

    def run():
        return subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
        )

    first, second = run(), run()
    assert "compiling kernels" in first.stderr
    assert first.stdout.split() == ["0", "1"]
    assert "compiling" not in second.stderr
    assert second.stdout.split() == ["1", "0"]


def test_where_nothing_can_be_written_kernels_are_compiled_each_time_and_it_is_said():
    nowhere = "from numba.core import caching; caching.FunctionCache._impl_class._locator_classes = []\n"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "0"}
    done = subprocess.run(
        [sys.executable, "-c", nowhere + PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    assert "compiling kernels, each time: NUMBA_CACHE_DIR may name a folder" in done.stderr
    assert "Traceback" not in done.stderr
