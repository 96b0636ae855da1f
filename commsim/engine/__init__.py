from commsim.core.jit import COUNT_FROM_FRONT

# Kernels of this package that count no references have no negative index, which is then not looked for.
COUNT_FROM_FRONT.add(__name__)
