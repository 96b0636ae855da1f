"""Shapes of transformers against published totals."""

import pytest

from commsim.training.steps.transformer import known_transformers, transformer


@pytest.mark.parametrize(
    ("name", "billions"),
    [("llama3-8b", 8.03), ("llama3-70b", 70.6), ("llama3-405b", 405.9), ("gpt3-175b", 175.0), ("deepseek-v3", 671.0),
     ("qwen3-30b-a3b", 30.5), ("qwen3-235b-a22b", 235.1), ("gpt-oss-120b", 116.8)],
)  # fmt: skip
def test_parameters_are_the_published_total(name, billions):
    assert transformer(name).total == pytest.approx(billions * 1e9, rel=2e-3)


def test_operations_of_a_token_are_six_per_parameter_and_the_attention():
    model = transformer("llama3-405b")
    dense = 6 * (model.total - model.vocab * model.hidden)
    assert model.flops(8192) == pytest.approx(dense + 126 * 12 * 4096 * 128 * 128, rel=1e-9)


def test_keys_and_values_of_a_token_have_the_bytes_of_their_heads():
    assert transformer("qwen3-8b").kv_bytes * 36 * 8192 == 1.125 * 2**30
    assert all(model.source for model in known_transformers().values())
