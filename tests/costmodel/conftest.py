import json
import random

import pytest

from commsim.costmodel.cost_model_file import text_of


def curve(operation, machines, gpus, faults="", seed=0, n=40, **more):
    """Times that ascend with jumps, and an interval."""
    numbers = random.Random(f"{operation}{machines}{gpus}{faults}{seed}")
    size = [*sorted(numbers.sample(range(16, 2**30), n - 1)), 2**30]
    time = [float(f"{(1 + machines) * (1e-5 + s / 1e11 * numbers.uniform(0.95, 1.05)):.6g}") for s in size]
    low, high = ([float(f"{t * share:.6g}") for t in time] for share in (0.8, 1.3))
    return {
        "operation": operation, "machines": machines, "gpus": gpus, "faults": faults, "size": size, "time": time,
        "low": low, "high": high, "busbw_factor": 1.5,
    } | more  # fmt: skip


@pytest.fixture(scope="session")
def tree():
    """A cost model with two operations, three numbers of machines and a case of faults."""
    curves = [curve(name, m, 8) for name in ("all_reduce", "all_gather") for m in (1, 2, 4)]
    curves += [curve("all_reduce", 4, 8, "links:5%")]
    curves[0]["choices"] = [[16, "ring/ll"], [65536, "nvls/simple"]]
    for key in ("low", "high"):
        del curves[1][key]
    head = {
        "commsim": "0", "network": "made up", "release": "NCCL 2.32", "routing": "ecmp", "faults": ["", "links:5%"],
        "placement": "the first GPUs", "units": {}, "unit_size": 16, "largest_size": 2**30,
        "certificate": {"tolerance": 0.01, "points": 10, "largest_error": 0.004}, "sources": ["a <source> & more"],
    }  # fmt: skip
    return json.loads(text_of(head, curves))


@pytest.fixture(scope="session")
def model_file(tree, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.json"
    path.write_text(json.dumps(tree))
    return path
