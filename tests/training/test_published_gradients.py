import pytest

from commsim.core.errors import InputError
from commsim.training.published_gradients import model_trace, published_models, source_text


@pytest.mark.parametrize("name", sorted(published_models()))
def test_a_model_has_its_bytes_its_density_and_the_time_that_is_given(name):
    trace, row = model_trace(name, 0.3), published_models()[name]
    assert trace.compute_time == pytest.approx(0.3)
    assert trace.backward_time == pytest.approx(0.2)
    assert (trace.name(len(trace.n_bytes) - 1) == "embedding") == ("embedding" in row)
    densities = {row[part][1] for part in ("dense", "embedding") if part in row}
    assert set(trace.density.tolist()) == densities
    assert ("recalled" in source_text(name)) == row["recalled"]


def test_an_lstm_is_the_parameters_of_its_table():
    trace = model_trace("lstm", 1.0)
    assert trace.n_bytes.sum() == pytest.approx(4 * (20e6 + 406e6))
    assert (trace.n_bytes * trace.density).sum() == pytest.approx(4 * (20e6 + 0.0113 * 406e6))


def test_what_is_not_known_is_one_line():
    with pytest.raises(InputError, match="unknown model 'lenet'; known: deeplight, lstm"):
        model_trace("lenet")
    with pytest.raises(InputError, match="deeplight: how long it computes is not known here; give --batch-time TIME"):
        model_trace("deeplight")
    assert model_trace("bert").backward_time == pytest.approx(0.2042)
