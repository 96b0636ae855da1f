"""Mutation testing: small seeded changes of the code, and whether a test of the area fails for them.

104 mutations, 13 of each area, seed 34071, tests not marked ``slow``. The last column counts those that survive after
tests were added for what survived; it includes equivalents.

    area       killed  survived  survive after new tests
    kernels         7         6         5
    routing         8         5         1
    placement       9         4         4
    service        13         0         0
    sweep          10         3         0
    engine         10         3         3
    nccl            8         5         3
    switch          9         4         4
    all            74        30        20

Equivalent are ``placement/search_kernel.py`` 138 (the limit on rounds: each round lowers a whole number, so the search
ends without it) and ``routing/ports_kernel.py`` 93 (the value is replaced before it is read). The others need tests.
"""
