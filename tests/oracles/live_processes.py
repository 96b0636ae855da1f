"""A live switch and its workers as processes of their own, on loopback, on ports that the system picks."""

import json
import multiprocessing
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from commsim.core.errors import CommsimError
from switch_model.live import SwitchGroup, ask_status
from switch_model.live.sums import drawn_tensor, worst_error

LIMIT_S = 100.0  # of anything here, on a machine that is busy
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["switch_model.live", "switch_model.live.sums"])


class SwitchProcess:
    """``commsim switch serve`` between `with` and its end."""

    def __init__(self, *flags: object, port: int = 0) -> None:
        command = [sys.executable, "-m", "commsim", "switch", "serve", "--port", str(port), *map(str, flags)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.startswith("# serving on 127.0.0.1, port "):
            raise RuntimeError(line + self.process.communicate(timeout=LIMIT_S)[1])
        self.port = int(line.split("port ")[1].split()[0])

    def status(self) -> dict[str, Any]:
        return ask_status("127.0.0.1", self.port)

    def counts(self) -> dict[str, int]:
        return self.status()["counters"]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(LIMIT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.process.terminate()
        try:
            self.output, self.errors = self.process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


class WorkerProcess:
    """One function in a process; what it returns, or the message of the error that a user would see."""

    def __init__(self, task: Callable[..., Any], *args: object) -> None:
        self._answer, theirs = PROCESSES.Pipe(False)
        self.process = PROCESSES.Process(target=_run, args=(theirs, task, args), daemon=True)
        self.process.start()
        theirs.close()

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def result(self) -> Any:
        if not self._answer.poll(LIMIT_S):
            self.process.kill()
            raise TimeoutError(f"a worker did not end within {LIMIT_S} s")
        try:
            return self._answer.recv()
        except EOFError:
            return "killed"
        finally:
            self._answer.close()
            self.process.join(LIMIT_S)
            self.process.close()


def _run(answer: Any, task: Callable[..., Any], args: tuple[object, ...]) -> None:
    try:
        answer.send(task(*args))
    except CommsimError as error:
        answer.send(f"{type(error).__name__}: {error}")


def all_workers(n_workers: int, task: Callable[..., Any], *args: object) -> list[Any]:
    """Run ``task(rank, n_workers, *args)`` in a process for each rank."""
    workers = [WorkerProcess(task, rank, n_workers, *args) for rank in range(n_workers)]
    return [worker.result() for worker in workers]


def reduce_drawn(rank: int, n_workers: int, port: int, job: str, plan: list[tuple[str, int]], **options: Any) -> Any:
    """Reduce drawn tensors of these types and sizes; return the worst error of each, and the packets sent."""
    with SwitchGroup(job, rank, n_workers, port=port, **options) as group:
        errors = []
        for seed, (dtype, n) in enumerate(plan):
            total = group.all_reduce(drawn_tensor(seed, rank, n, dtype))
            errors.append(worst_error(total, seed, n_workers, group.lease.elements))
        return errors, group.traffic.sent - group.traffic.retransmissions


def right(plan: list[tuple[str, int]], errors: list[float]) -> bool:
    """Whether integers are exact and floats within their bound."""
    return all(error == 0 if dtype == "int32" else error <= 1 for (dtype, _), error in zip(plan, errors, strict=True))


def reduce_for_ever(rank: int, n_workers: int, port: int, job: str, started: str) -> None:
    """Reduce until something fails; touches a file when the first sum has come."""
    with SwitchGroup(job, rank, n_workers, port=port) as group:
        while True:
            total = group.all_reduce(np.ones(20_000, np.int32))
            assert (total == n_workers).all()
            Path(f"{started}{rank}").touch()


def read_json(path: Path) -> Any:
    return json.loads(path.read_text())
