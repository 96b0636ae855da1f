"""Training policies: when gradients of data-parallel workers go to the network; each returns a graph of tasks.

To add one, write ``commsim/training/policies/NAME.py`` with a function decorated by :func:`training_policy`, and its
test; or a file of your own, ``--policy FILE.py``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Concatenate, ParamSpec, cast

from commsim.core.files.own_files import resolve
from commsim.core.registry import Registry
from commsim.core.spec import check_arguments, read_arguments
from commsim.training.data_parallel_setting import TrainingSetting
from commsim.training.task_graph import TaskGraph

P = ParamSpec("P")
TRAINING_POLICIES: Registry[TaskGraph] = Registry("training policy", __name__)


def training_policy(
    build: Callable[Concatenate[TrainingSetting, P], TaskGraph],
) -> Callable[Concatenate[TrainingSetting, P], TaskGraph]:
    """Register a policy under its own name; its arguments are checked whenever it is called."""

    @functools.wraps(build)
    def named(setting: TrainingSetting, *args: P.args, **kwargs: P.kwargs) -> TaskGraph:
        bound = inspect.signature(build).bind(setting, *args, **kwargs)
        check_arguments(build, {k: v for k, v in bound.arguments.items() if k != "setting"})
        return build(setting, *args, **kwargs)

    TRAINING_POLICIES.add(named)
    return cast("Callable[Concatenate[TrainingSetting, P], TaskGraph]", named)


def load_policy(text: str) -> Callable[[TrainingSetting], TaskGraph]:
    """Read ``name:key=value,...`` as a function from a setting to the graph of an iteration.

    Raises
    ------
    InputError
        If the policy is unknown or an argument is wrong.
    """
    entry, raw = resolve(TRAINING_POLICIES, text)
    return functools.partial(entry.build, **read_arguments(entry.build, raw, names=("setting",)))
