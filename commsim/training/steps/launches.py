"""Host time of layers with experts: kernels that the program launches one by one while the accelerator waits.

The tokens that each expert gets are counted on the accelerator, and the host needs these counts before it can launch
the kernels of the experts. So it cannot run ahead, and what it takes to launch adds to a pass. A program that is
captured as one graph launches nothing.
"""

from __future__ import annotations

from .parallel_sizes import ParallelSizes
from .transformer import Transformer

# Seconds of the host for a call: of a matrix product, and of an element-wise kernel (docs/data/gpus.md, launches of
# PyTorch on the hosts of an H100 and an H200).
PRODUCT_LAUNCH, ELEMENTWISE_LAUNCH = 21e-6, 10.3e-6
# Mean of these and of a norm, 15.8 us.
LAUNCH = 16e-6
# Calls of a layer outside of its experts, counted in a program that permutes tokens: router, choice of experts, sums
# by expert and their copies to the host, permutation, both exchanges and the way back, and the attention between.
CALLS_FORWARD, CALLS_BACKWARD = 45, 55
# Of one expert: two products forward and four backward, its activation, and casts of what comes in.
PRODUCTS_FORWARD, PRODUCTS_BACKWARD, CALLS_OF_EXPERT = 2, 4, 2


def expert_launches(model: Transformer, layout: ParallelSizes, *, backward: bool) -> float:
    """Return the seconds of the host for launches in a pass of the mean layer; 0 of models without experts.

    Parameters
    ----------
    model : Transformer
        Shape.
    layout : ParallelSizes
        Parallelism, which says how many experts a rank has.
    backward : bool
        Which pass.
    """
    if not model.experts:
        return 0.0
    calls, products = (CALLS_BACKWARD, PRODUCTS_BACKWARD) if backward else (CALLS_FORWARD, PRODUCTS_FORWARD)
    each = products * PRODUCT_LAUNCH + CALLS_OF_EXPERT * ELEMENTWISE_LAUNCH
    return (calls * LAUNCH + model.experts / layout.expert * each) * model.n_expert_layers / model.layers
