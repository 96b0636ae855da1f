"""What is measured, in folders by subject; none of it is shipped.

``accuracy``
    Predictions beside published figures, and the engines beside each other.
``attacks``
    Killed processes, forged datagrams, long runs.
``house``
    Rules of the source tree, and files made from the registries.
``mpi``
    Programs for mpirun.
``nccl_tables``
    NCCL's measured tables beside our prediction, and the fit of its costs.
``peers``
    The same work put to other simulators.
``one_gpu``
    What one GPU does: products, attention, memory, launches, steps.
``real_gradients``
    Gradients of small models, predicted and reduced.
``scale``
    Time and memory by number of ranks; queues of the flow engine.
``speed``
    pytest-benchmark.
``switch``
    The switch as it runs.
``synthesis``
    Synthesized schedules beside the optimum.
``validation``
    The validation matrix.
"""

from commsim.core.jit import compile_all

compile_all()  # what is measured is compiled, however little it is
