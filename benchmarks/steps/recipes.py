"""What the recipes of Megatron-Bridge set and its tables do not say: graphs, and what hides exchanges of experts.

Read in ``src/megatron/bridge/perf_recipes`` at 067f987df, the commit of the tables; of older releases it is assumed.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.steps.setup import Setup

# Models whose recipes capture a whole step as a graph on GB200 with MXFP8; since 26.06, before which their steps took
# 15 to 60 % longer.
WHOLE_GRAPHS = ("deepseek-v3", "gpt-oss-120b", "qwen3-30b-a3b", "qwen3-235b-a22b")
GRAPHS_SINCE = (26, 6)
# Model, GPU and precision with `overlap_moe_expert_parallel_comm`.
HIDE_EXPERTS = (
    ("deepseek-v3", "b200", "mxfp8"),
    ("gpt-oss-120b", "gb200", "bf16"),
    ("qwen3-30b-a3b", "b200", "mxfp8"),
    ("qwen3-235b-a22b", "h100", "bf16"),
    ("qwen3-235b-a22b", "h100", "fp8"),
)
# Of these the recipes capture a whole step and hide exchanges too.
GRAPHS_HIDE_EXPERTS = ("deepseek-v3", "gpt-oss-120b")


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
    precision = one.variant or one.precision
    graphs = (one.gpu, precision) == ("gb200", "mxfp8") and one.model in WHOLE_GRAPHS and numbers >= GRAPHS_SINCE
    hides = (one.model, one.gpu, precision) in HIDE_EXPERTS or (graphs and one.model in GRAPHS_HIDE_EXPERTS)
    said = [text for text, has in (("one graph of a step", graphs), ("exchanges of experts hide", hides)) if has]
    told = (f"as its recipe: {', '.join(said)}",) if said else ()
    return replace(one, attention="fused", graphs=graphs, hides_experts=hides, assumed=(*one.assumed, *told))
