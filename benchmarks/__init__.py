"""What is measured: programs for mpirun, and what commsim itself costs."""

from commsim.core.jit import compile_all

compile_all()  # what is measured is compiled, however little it is
