"""Examples that hand a cost model to other tools, with the real library where it is installed."""

import importlib.util
import io
import sys
from pathlib import Path

import pytest

import commsim
from commsim.costmodel.evaluators import cost_model as evaluator
from commsim.costmodel.evaluators.cost_model import CostModel

EXAMPLES = Path(commsim.__file__).parents[1] / "examples" / "cost_model"


def example(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_is_of_at_most_50_lines():
    found = {path.name: len(path.read_text().splitlines()) for path in EXAMPLES.glob("*.py")}
    assert len(found) == 4
    assert max(found.values()) <= 50, found


@pytest.mark.torch
@pytest.mark.slow
def test_inductors_scheduler_asks_the_model(tree):
    torch = pytest.importorskip("torch")
    from torch._inductor.fx_passes.overlap_scheduling import get_custom_estimation
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.testing._internal.distributed.fake_pg import FakeStore

    model = CostModel(tree)
    hook = example("inductor_estimator").estimator(model, gpus=8)
    torch.distributed.init_process_group("fake", rank=0, world_size=16, store=FakeStore())
    try:
        group = torch.distributed.group.WORLD.group_name

        def step(x):
            summed = torch.ops._c10d_functional.all_reduce(x, "sum", group)
            return torch.ops._c10d_functional.all_gather_into_tensor(summed + 1, 16, group)

        nodes = list(make_fx(step, tracing_mode="fake")(torch.ones(2**20)).graph.nodes)
        found = {str(n.target): get_custom_estimation(n, hook, None) for n in nodes if n.op == "call_function"}
    finally:
        torch.distributed.destroy_process_group()
    assert found["_c10d_functional.all_reduce.default"] == 1e3 * model.answer("all_reduce", 2, 8, 2**22)[0]
    assert found["_c10d_functional.all_gather_into_tensor.default"] == 1e3 * model.answer("all_gather", 2, 8, 2**26)[0]
    assert found["aten.add.Tensor"] is None


def test_a_node_that_brings_less_time_scores_more(tree):
    scores = example("kubernetes_score").scores
    model, calls = CostModel(tree), {("all_reduce", 2**24): 3, ("all_gather", 2**20): 1}
    found = scores(model, calls, {"near": (1, 8), "far": (4, 8), "unknown": (3, 8)})
    assert found["near"] == 100
    assert 1 <= found["far"] < 100
    assert found["unknown"] == 0
    assert scores(model, calls, {}) == {}


def test_a_serving_simulators_table_is_read_back(tree, monkeypatch):
    pd = pytest.importorskip("pandas")
    monkeypatch.setitem(sys.modules, "cost_model", evaluator)
    model, out = CostModel(tree), io.StringIO()
    example("serving_table").write(model, "all_reduce", out)
    table = pd.read_csv(io.StringIO(out.getvalue()))
    row = table[(table["num_workers"] == 16) & (table["size"] == 2**20)].iloc[0]
    assert row["time_stats.all_reduce.median"] == pytest.approx(1e3 * model.answer("all_reduce", 2, 8, 2**20)[0])
    assert (table["time_stats.all_reduce.min"] <= table["time_stats.all_reduce.max"]).all()
    assert set(table["devices_per_node"]) == {8}


def test_a_data_frame_has_every_curve(tree):
    pytest.importorskip("pandas")
    model = CostModel(tree)
    found = example("pandas_frame").frame(model, [2**20, 2**22])
    assert len(found) == 2 * len(model.curves())
    best = found.groupby("operation", observed=True)["busbw_Bps"].max()
    assert best["all_reduce"] > 0
    assert set(found["choice"]) >= {"nvls/simple", ""}
