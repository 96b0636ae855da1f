"""Times of collectives for torch's compiler: a hook of its scheduler, answered by a cost model.

    model = CostModel.read("dgx.json")        # commsim export cost-model, and commsim export evaluator python
    torch._inductor.config.aten_distributed_optimizations.custom_runtime_estimation = estimator(model, gpus=8)

Inductor asks it for each node of the graph: milliseconds of a collective, None of anything else.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch.fx import Node
from torch.fx.operator_schemas import normalize_function

OPERATIONS = {
    "all_reduce": "all_reduce",
    "all_gather_into_tensor": "all_gather",
    "reduce_scatter_tensor": "reduce_scatter",
    "all_to_all_single": "all_to_all",
}


def estimator(model, gpus: int) -> Callable[[Node, int | None], float | None]:
    """Return the hook of a cost model, for machines of so many GPUs."""

    def estimate(node: Node, override_size: int | None = None) -> float | None:
        name = node.target.name() if isinstance(node.target, torch._ops.OpOverload) else ""
        space, _, words = name.partition("::")
        operation = OPERATIONS.get(words.partition(".")[0])
        if space != "_c10d_functional" or operation is None:
            return None
        arguments = normalize_function(node.target, node.args, node.kwargs, normalize_to_only_use_kwargs=True)[1]
        ranks = dist.distributed_c10d._resolve_process_group(arguments["group_name"]).size()
        value = arguments["input"].meta["val"]
        size = value.numel() * value.element_size() if override_size is None else override_size
        size *= ranks if operation == "all_gather" else 1  # each rank brings a part; the file counts the whole
        per_machine = min(gpus, ranks)
        try:
            return 1e3 * model.answer(operation, -(-ranks // per_machine), per_machine, size)[0]
        except (KeyError, ValueError):  # the file has no such group, or no such size
            return None

    return estimate
