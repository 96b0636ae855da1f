import math

import pytest

from commsim.papers.layers import (
    FLOAT,
    LAYERS,
    expert_gain,
    greatest_gain,
    overlapped,
    resharding_gain,
    server_images,
    server_iteration,
)


@pytest.mark.parametrize(
    ("model", "megabytes", "multiplications"),
    [("VGG16", 553.4, 15.47e9), ("VGG19", 574.7, 19.63e9), ("ResNet50", 102.0, 3.86e9)],
)
def test_layers_add_up_to_the_published_sizes(model, megabytes, multiplications):
    assert sum(FLOAT * weights for weights, _ in LAYERS[model]) == pytest.approx(megabytes * 1e6, rel=1e-3)
    assert sum(work for _, work in LAYERS[model]) == pytest.approx(multiplications, rel=2e-3)


def test_one_layer_is_pushed_whole_and_then_pulled_and_partitions_use_both_ways():
    layers, batch, bandwidth = [(1e6, 1.0)], 3.0, 4e6
    whole = server_iteration(layers, batch, bandwidth, math.inf, priority=False)
    halves = server_iteration(layers, batch, bandwidth, 5e5, priority=False)
    assert whole == pytest.approx(2.0 + 1.0 + 1.0 + 1.0)  # backward, push, pull, forward
    assert halves == pytest.approx(2.0 + 1.0 + 0.5 + 1.0)
    assert server_iteration(layers, batch, bandwidth, 5e5, priority=False, colocated=True) == pytest.approx(whole)


def test_front_layers_overtake_so_that_only_the_first_is_waited_for():
    layers = [(1e6, 1.0), (9e6, 1e-9)]  # the back layer is ready first, and nine times as large
    fifo = server_iteration(layers, 3.0, 4e6, 1e6, priority=False)
    first = server_iteration(layers, 3.0, 4e6, 1e6, priority=True)
    assert first < fifo


def test_machines_that_send_nothing_scale_linearly_and_others_gain_by_bytescheduler():
    assert server_images("VGG16", 8, 98.6, 11.7) == pytest.approx(8 * 98.6)
    assert server_images("VGG16", 64, 98.6, 11.7, scheduled=True) > 1.9 * server_images("VGG16", 64, 98.6, 11.7)


@pytest.mark.deep
@pytest.mark.slow
def test_dense_layers_make_vgg_gain_more_from_slices_than_resnet():
    assert greatest_gain("VGG19") > greatest_gain("ResNet50") > 1.2


def test_overlap_lies_between_the_longer_part_and_the_sum():
    forward, backward, communication = 0.115, 0.28, 0.59
    found = overlapped("ResNet50", forward, backward, communication)
    rest = 1 - forward - backward - communication
    assert max(backward, communication) + forward + rest < found < 1


def test_experts_gain_what_pipelining_hides_and_at_most_all_to_all():
    for experts, all_to_all, share in ((4, 0.259, 0.367), (16, 0.333, 0.395)):
        gain = expert_gain(12, experts, all_to_all, share)
        assert 1.2 < gain < 1 / (1 - share)


def test_a_chain_to_many_receivers_takes_one_message_and_the_chunks_that_fill_it():
    assert resharding_gain(8, chunks=64) == pytest.approx(8 / (1 + 7 / 64))
