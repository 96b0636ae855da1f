import json

import numpy as np
import pytest

from commsim import predict
from commsim.cli import main
from commsim.core.errors import InputError
from commsim.prediction.build import prepare
from commsim.sparse.compressors import compressor_of
from commsim.sparse.plan_compressed import compressed

STAR = "star:n_hosts=8,bandwidth=100Gbps,latency=1us"
SIZE = 4_000_000
GATHERED = ["top_k:density=0.01", "random_k:k=100", "dgc", "sign", "one_bit:columns=1000", "qsgd:bits=2", "power_sgd"]


@pytest.mark.parametrize("compressor", GATHERED)
def test_gathered_messages_take_the_time_of_an_all_gather_of_their_bytes(compressor):
    n_bytes = compressor_of(compressor).message_bytes(SIZE // 4)
    plain = predict("ring_all_gather", STAR, 8.0 * n_bytes, overhead="0us")
    got = compressed(prepare("ring_all_gather", STAR), compressor).predict(SIZE)
    assert (got.time, got.bytes_on_wire) == (plain.time, plain.bytes_on_wire)
    assert (got.size, got.operation) == (SIZE, "all_reduce")
    assert got.counters["message_bytes"] == n_bytes == plain.bytes_on_wire / (8 * 7)
    assert got.counters["compression"] == SIZE / n_bytes


def test_a_message_has_the_bytes_that_are_predicted():
    gradient = np.random.default_rng(0).standard_normal(SIZE // 4).astype(np.float32)
    for compressor in GATHERED:
        predicted = compressed(prepare("ring_all_gather", STAR), compressor).message_bytes(SIZE // 4)
        assert (compressor_of(compressor).encode(gradient).n_bytes,) == predicted


@pytest.mark.parametrize(
    ("compressor", "sizes"), [("random_k:k=8000", [32_000]), ("power_sgd:rank=4", [16_000, 16_000])]
)
def test_summed_messages_take_the_time_of_one_all_reduce_after_the_other(compressor, sizes):
    runs = [predict("ring_all_reduce", STAR, size, overhead="0us") for size in sizes]
    got = compressed(prepare("ring_all_reduce", STAR), compressor).predict(SIZE)
    assert got.time == got.time_from_last_start == sum(r.time for r in runs)
    assert got.bytes_on_wire == sum(r.bytes_on_wire for r in runs) == 14 * sum(sizes)
    np.testing.assert_array_equal(got.link_bytes, sum(r.link_bytes for r in runs))


@pytest.mark.parametrize(
    ("collective", "compressor", "message"),
    [
        ("ring_all_reduce", "top_k", "every rank keeps other elements"),
        ("ring_all_reduce", "sign", r"a sum of p signs .* use an all-gather, such as ring_all_gather"),
        ("ring_all_reduce", "qsgd", "every rank's buckets have norms of their own"),
        ("ring_all_reduce", "one_bit", "every rank has different scales"),
        ("binomial_broadcast", "sign", "binomial_broadcast is a broadcast"),
        ("gtop_k:density=0.1", "random_k", "gtop_k has sparse data already, which random_k would compress once more"),
    ],
)
def test_what_cannot_carry_compressed_gradients_says_why(collective, compressor, message):
    with pytest.raises(InputError, match=message):
        compressed(prepare(collective, STAR), compressor)


@pytest.mark.parametrize(
    ("compressor", "size", "message"),
    [
        ("threshold:above=0.1", SIZE, "as many elements as the data has above it"),
        ("top_k:k=1000001", SIZE, r"no 1000001 to keep: k must be 1\.\.1000000"),
        ("sign", 4_000_002, "whole elements of 4 bytes, got a size of 4e"),
        ("sign", 0, "whole elements of 4 bytes, got a size of 0"),
        ("power_sgd:rank=600", SIZE, "no smaller than the gradient"),
    ],
)
def test_a_gradient_that_does_not_fit_the_compressor_is_refused(compressor, size, message):
    with pytest.raises(InputError, match=message):
        compressed(prepare("ring_all_gather", STAR), compressor).predict(size)


def test_the_command_line_compresses(tmp_path, capsys):
    out = tmp_path / "out.json"
    argv = ["run", "--topology", STAR, "-b", "4000000", "-e", "4000000", "--json", str(out)]
    argv += ["--collective", "ring_all_gather", "--compressor", "top_k:density=0.01", "-v"]
    assert main(argv) == 0
    (row,) = json.loads(out.read_text())["results"]
    assert row["size_B"] == SIZE
    assert row["counters"]["message_bytes"] == 10_000 * 8
    assert row["bytes_on_wire"] == 8 * 7 * 80_000
    printed = capsys.readouterr().out
    assert "# top_k:density=0.01: messages are gathered, and summed at every rank" in printed


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--operation", "all_reduce"], "--compressor goes with --collective alone"),
        (["--group", "0,1,2"], "compressor is not modelled for groups"),
        (["ring_all_gather", "--flap", "switch:switch0@1us+1us"], "flap is not modelled for compressed gradients"),
    ],
)
def test_a_compressor_goes_with_named_collectives_alone(flags, message, capsys):
    assert main(["run", "--topology", STAR, "--compressor", "sign", *flags]) == 2
    assert message in capsys.readouterr().err
