"""Traces of backward passes that hypothesis draws for several tests."""

import numpy as np
from hypothesis import strategies as st

from commsim.training.backward_trace import BackwardTrace

some = st.one_of(st.just(0.0), st.floats(1e-3, 5.0))
traces = st.lists(st.tuples(some, some, some), min_size=1, max_size=12).map(
    lambda rows: BackwardTrace(
        np.array([r[0] for r in rows]), np.cumsum([r[1] for r in rows]), np.array([r[2] for r in rows])
    )
)
