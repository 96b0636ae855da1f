"""What can happen in one step, as a number: kind from bit 0, worker 8, chunk 16, epochs ago 24, more 32, fault 56."""

from __future__ import annotations

COMES, RESULT, RESTART, REBOOT, RESENT, PARTIAL, SERVED = range(1, 8)
# What a step may show to be wrong.
FINE, TWO_SUMS, NOT_ONCE = range(3)
