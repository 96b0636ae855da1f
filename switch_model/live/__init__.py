"""The live switch: a UDP switch that adds up what real workers send, and its workers.

`LiveSwitch` serves; `SwitchGroup` is a worker; `switch_all_reduce` and `switch_hook` are what torch programs use.
"""

from .authentication import Secrets
from .server import LiveSwitch, SwitchOptions
from .session import ask_status
from .torch_all_reduce import switch_all_reduce, switch_hook
from .worker import SwitchGroup

__all__ = ["LiveSwitch", "Secrets", "SwitchGroup", "SwitchOptions", "ask_status", "switch_all_reduce", "switch_hook"]
