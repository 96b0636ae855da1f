"""What the recipes of Megatron-Bridge set and its tables do not say: kernels of attention, and a graph of the step.

Read in ``src/megatron/bridge/perf_recipes`` at 067f987df, the commit of the tables. Some recipes there also hide
exchanges of experts (``overlap_moe_expert_parallel_comm``). The tables are of many releases and do not say it, and
steps of these setups took as long as if nothing hid them, so no row is taken to.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.steps.setup import Setup
from commsim.training.steps.roofline import FUSED

# Models whose recipes capture a whole step as a graph on GB200 with MXFP8; since 26.06, before which their steps took
# 15 to 60 % longer.
WHOLE_GRAPHS = ("deepseek-v3", "gpt-oss-120b", "qwen3-30b-a3b", "qwen3-235b-a22b")
GRAPHS_SINCE = (26, 6)


def with_recipe(one: Setup, release: str) -> Setup:
    """Return the row with what its recipe sets.

    Parameters
    ----------
    one : Setup
        Row of the tables.
    release : str
        Container, such as ``26.04.01``.
    """
    numbers = tuple(int(word) for word in release.split(".") if word.isdigit())
    on = (one.gpu, one.variant or one.precision)
    graphs = on == ("gb200", "mxfp8") and one.model in WHOLE_GRAPHS and numbers >= GRAPHS_SINCE
    told = ("a step is one graph, as its recipe has it",) if graphs else ()
    return replace(one, attention=FUSED, graphs=graphs, assumed=(*one.assumed, *told))
