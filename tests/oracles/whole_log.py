"""The value pass on a whole log, as one piece."""

from typing import Any

from switch_model.payload import Payload
from switch_model.replay import Replay, ValuePass
from switch_model.system import System


def replay(log: Any, payload: Payload, system: System, n_registers: int, n_messages: int) -> Replay:
    """Return what comes of values."""
    values = ValuePass(payload, system, n_registers)
    values.carry_out(log, n_messages)
    return values.outcome()
