"""What programs call: arrays and torch tensors, in place or not, and a torch model trained through the switch."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from live_processes import SwitchProcess, all_workers
from ports import free_ports

from commsim.core.errors import BackendError, InputError
from switch_model.live import LiveSwitch, SwitchGroup, SwitchOptions, switch_all_reduce, switch_hook


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    stop = threading.Event()

    def serve(switch: LiveSwitch) -> None:
        while not stop.is_set():
            switch.step(0.02)

    with LiveSwitch(SwitchOptions(port=0)) as switch:
        thread = threading.Thread(target=serve, args=(switch,))
        thread.start()
        yield switch.address[1]
        stop.set()
        thread.join()


def together(port: int, n_workers: int, task: Callable[[SwitchGroup], Any]) -> list[Any]:
    """Run a task as every rank, in threads."""

    def one(rank: int) -> Any:
        with SwitchGroup("threads", rank, n_workers, port=port) as group:
            return task(group)

    with ThreadPoolExecutor(n_workers) as pool:
        return [future.result() for future in [pool.submit(one, rank) for rank in range(n_workers)]]


def test_thirty_two_workers(port: int) -> None:
    def task(group: SwitchGroup) -> np.ndarray:
        return group.all_reduce(np.full((3, 100), group.lease.rank, np.int32))

    for got in together(port, 32, task):
        assert got.shape == (3, 100)
        assert (got == 31 * 16).all()


def test_one_worker_gets_its_own_tensor_back(port: int) -> None:
    values = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    (got,) = together(port, 1, lambda group: group.all_reduce(values))
    np.testing.assert_allclose(got, values, atol=2e-9 * np.abs(values).max())


def test_the_sum_is_new_or_where_it_was_asked_for(port: int) -> None:
    def task(group: SwitchGroup) -> None:
        mine = np.arange(200, dtype=np.int32)
        given = mine.copy()
        given.setflags(write=False)
        assert (group.all_reduce(given) == 2 * mine).all()
        assert (given == mine).all()
        out = np.empty_like(mine)
        assert group.all_reduce(mine, out=out) is out
        assert (out == 2 * mine).all()
        assert switch_all_reduce(mine, group) is mine
        assert (mine == out).all()

    together(port, 2, task)


def test_arrays_with_gaps_are_reduced_in_place_too(port: int) -> None:
    def task(group: SwitchGroup) -> None:
        whole = np.arange(600, dtype=np.float32).reshape(20, 30)
        before = whole.copy()
        switch_all_reduce(whole[::2, 1::3], group)
        np.testing.assert_allclose(whole[::2, 1::3], 2 * before[::2, 1::3], rtol=1e-6)
        assert (whole[1::2] == before[1::2]).all()

    together(port, 2, task)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (np.zeros(3), "int32 and float32, at least 1 element, got float64"),
        (np.zeros(0, np.int32), r"got int32\[0\]"),
        ([1, 2], "expected a NumPy array or a torch tensor, got list"),
    ],
)
def test_what_the_switch_cannot_add_is_refused_and_the_group_lives_on(port: int, wrong: Any, complaint: str) -> None:
    def task(group: SwitchGroup) -> None:
        with pytest.raises(InputError, match=complaint):
            switch_all_reduce(wrong, group)
        with pytest.raises(InputError, match="out must be contiguous"):
            group.all_reduce(np.zeros(4, np.int32), out=np.zeros(5, np.int32))
        assert group.all_reduce(np.ones(1, np.int32))[0] == 2

    together(port, 2, task)


def test_a_group_that_is_closed_or_failed_says_so(port: int) -> None:
    def task(group: SwitchGroup) -> None:
        group.barrier()
        group.close()
        with pytest.raises(BackendError, match="the group is closed"):
            group.all_reduce(np.ones(1, np.int32))

    together(port, 2, task)


@pytest.mark.torch
def test_torch_tensors_are_reduced_in_place(port: int) -> None:
    torch = pytest.importorskip("torch")

    def task(group: SwitchGroup) -> None:
        for dtype in (torch.int32, torch.float32):
            tensor = torch.arange(12, dtype=dtype).reshape(3, 4).requires_grad_(dtype == torch.float32)
            assert switch_all_reduce(tensor, group) is tensor
            assert torch.allclose(tensor.detach().double(), 2.0 * torch.arange(12).double().reshape(3, 4))
        across = torch.arange(12, dtype=torch.int32).reshape(3, 4).t()
        switch_all_reduce(across, group)
        assert (across == 2 * torch.arange(12).reshape(3, 4).t()).all()

    together(port, 2, task)


@pytest.mark.slow
@pytest.mark.torch
def test_a_model_trained_through_the_switch_ends_as_one_trained_without() -> None:
    pytest.importorskip("torch")
    with SwitchProcess("--drop-in", 0.005) as switch:
        losses = all_workers(2, train_twice, switch.port)
    for ours, plain in losses:
        assert plain[-1] < plain[0] / 2  # it learns
        np.testing.assert_allclose(ours, plain, rtol=1e-5)


def train_twice(rank: int, n_workers: int, port: int) -> tuple[list[float], list[float]]:
    """Losses of the same small model with the hook and without it."""
    import os

    import torch
    from torch.nn.parallel import DistributedDataParallel

    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    with SwitchGroup("ddp", rank, n_workers, port=port) as group:
        meeting = np.zeros(1, np.int32)
        if rank == 0:
            meeting[:] = free_ports(1)
        where = f"tcp://127.0.0.1:{group.all_reduce(meeting)[0]}"
        torch.distributed.init_process_group("gloo", init_method=where, rank=rank, world_size=n_workers)
        try:
            return train(rank, DistributedDataParallel, switch_hook(group)), train(rank, DistributedDataParallel, None)
        finally:
            torch.distributed.destroy_process_group()


def train(rank: int, wrapped: Any, hook: Any) -> list[float]:
    import torch

    torch.manual_seed(0)
    model = wrapped(torch.nn.Sequential(torch.nn.Linear(20, 50), torch.nn.Tanh(), torch.nn.Linear(50, 1)))
    if hook is not None:
        model.register_comm_hook(None, hook)
    optimiser, random = torch.optim.SGD(model.parameters(), lr=0.05), torch.Generator().manual_seed(rank)
    losses = []
    for _ in range(30):
        points = torch.randn(64, 20, generator=random)
        loss = (model(points) - points.sum(1, keepdim=True) / 4).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        mean = loss.detach().clone()
        torch.distributed.all_reduce(mean)
        losses.append(float(mean) / torch.distributed.get_world_size())
    return losses
