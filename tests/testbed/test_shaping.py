"""Rates, buffers and losses of links as the kernel's queues have them."""

import dataclasses

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.run.inputs import load_network
from commsim.testbed import layout as shaping
from commsim.testbed.layout import BURST, FRAME, QUEUE, shape_of


@pytest.fixture
def kernel(monkeypatch):
    """A kernel of which the test says what it can do."""

    def has(*, netem, nftables=True):
        monkeypatch.setattr(shaping, "has_netem", lambda: netem)
        monkeypatch.setattr(shaping, "has_nftables", lambda: nftables)

    return has


def star(**fields):
    return dataclasses.replace(load_network("star:n_hosts=2,bandwidth=200Mbps,latency=0s"), **fields)


def test_a_link_is_a_token_bucket_of_two_frames_at_its_rate(kernel):
    kernel(netem=False)
    shape = shape_of(star(), 0)
    ((kind, options),) = shape.queues
    assert kind == "tbf"
    assert options["rate"] == 25_000_000
    assert options["burst"] == BURST == 2 * 9014
    assert options["limit"] == QUEUE
    assert shape.loss == 0
    assert not shape.warnings


@pytest.mark.parametrize(("buffer", "limit"), [(100_000.0, 100_000), (1.0, BURST), (1e12, QUEUE), (np.inf, QUEUE)])
def test_the_queue_is_as_long_as_the_buffer_but_never_shorter_than_what_may_pass_at_once(kernel, buffer, limit):
    kernel(netem=False)
    assert shape_of(star(buffer=buffer), 0).queues[0][1]["limit"] == limit


def test_each_link_has_its_own_rate(kernel):
    kernel(netem=False)
    rates = [1e6, 2e6, 3e6, 4e6]
    found = [shape_of(star(bandwidth=np.array(rates)), link).queues[0][1]["rate"] for link in range(4)]
    assert found == rates


@pytest.mark.parametrize("rate", [9_999.0, 4.1e9])
def test_a_rate_that_no_bucket_has_is_refused_with_the_link(kernel, rate):
    kernel(netem=False)
    with pytest.raises(InputError, match=r"10000 to 4e\+09 bytes/s, got .* on h0->.*; scale the network down"):
        shape_of(star(bandwidth=rate), 0)


def test_the_ends_of_the_range_are_taken(kernel):
    kernel(netem=False)
    assert shape_of(star(bandwidth=10_000.0), 0).queues
    assert shape_of(star(bandwidth=4e9), 0).queues


def test_netem_delays_and_loses_where_the_kernel_has_it(kernel):
    kernel(netem=True)
    shape = shape_of(star(latency=2e-3, loss=0.01), 0)
    (outer, delayed), (inner, bucket) = shape.queues
    assert (outer, inner) == ("netem", "tbf")
    assert delayed["delay"] == 2000
    assert delayed["loss"] == pytest.approx(1.0)
    assert bucket["parent"] == "1:1"
    assert shape.loss == 0
    assert not shape.warnings


def test_without_netem_latency_is_left_out_and_said_and_loss_becomes_a_rule(kernel):
    kernel(netem=False)
    shape = shape_of(star(latency=2e-3, loss=0.01), 0)
    assert [kind for kind, _ in shape.queues] == ["tbf"]
    assert shape.loss == pytest.approx(0.01)
    (warning,) = shape.warnings
    assert "not their latencies" in warning


def test_with_neither_there_is_no_loss_and_that_is_said(kernel):
    kernel(netem=False, nftables=False)
    shape = shape_of(star(loss=0.01), 0)
    assert shape.loss == 0
    assert shape.warnings == ("neither netem nor nftables: no losses",)


def test_a_message_is_cut_into_frames_with_headers():
    assert FRAME.framing.payload == 9000 - 52
    assert FRAME.framing.header == 66
