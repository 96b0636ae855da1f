# Kernels of this package that count no references have no negative index, which is then not looked for.
COUNT_FROM_FRONT = True
