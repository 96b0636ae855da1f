import numpy as np

from commsim.pages.derive import with_derived
from commsim.pages.figure_tables import table_of_rows
from commsim.pages.study import parameters_of


def rows(**columns):
    names = list(columns)
    return table_of_rows([dict(zip(names, values, strict=True)) for values in zip(*columns.values(), strict=True)])


def derived(table, baseline=""):
    return with_derived(table, parameters_of(table), baseline)


def test_speedup_is_over_the_baseline_at_the_same_size():
    table = rows(
        collective=["ring_all_reduce", "tree", "ring_all_reduce", "tree", "tree"],
        operation=["all_reduce"] * 5, size_B=[1, 1, 2, 2, 4], time_s=[10.0, 5.0, 20.0, 40.0, 1.0],
    )  # fmt: skip
    np.testing.assert_allclose(derived(table)["speedup"].values, [1, 2, 1, 0.5, np.nan])
    np.testing.assert_allclose(derived(table, "tree")["speedup"].values, [0.5, 1, 2, 1, 1])


def test_a_baseline_of_another_operation_is_none():
    table = rows(
        collective=["ring_all_reduce", "tree_broadcast"], operation=["all_reduce", "broadcast"], time_s=[1.0, 2.0]
    )
    np.testing.assert_array_equal(derived(table)["speedup"].values, [1, np.nan])


def test_a_parameter_that_some_rows_lack_is_equal_to_itself():
    table = rows(
        collective=["ring", "tree", "ring", "tree"], operation=["all_reduce"] * 4,
        k=[None, None, 4.0, 8.0], j=[1.0, 1.0, 2.0, 2.0], time_s=[2.0, 1.0, 3.0, 3.0],
    )  # fmt: skip
    np.testing.assert_array_equal(derived(table)["speedup"].values, [1, 2, 1, np.nan])


def test_repeats_with_other_seeds_are_compared_with_the_median():
    table = rows(
        collective=["ring", "ring", "ring", "tree"], operation=["all_reduce"] * 4, seed=[1, 2, 3, 9],
        time_s=[1.0, 6.0, 2.0, 4.0],
    )  # fmt: skip
    assert derived(table)["speedup"].values[3] == 0.5


def test_efficiency_is_busbw_over_that_with_the_fewest_ranks():
    table = rows(
        collective=["ring"] * 4, n_ranks=[2, 4, 8, 4], size_B=[64, 64, 64, 128], time_s=[1.0] * 4,
        busbw_Bps=[10.0, 8.0, 5.0, 9.0],
    )  # fmt: skip
    out = derived(table)
    np.testing.assert_allclose(out["strong_efficiency"].values, [1, 0.8, 0.5, np.nan])
    np.testing.assert_allclose(out["weak_efficiency"].values, [1, np.nan, np.nan, 0.9])
    assert out["size_per_rank_B"].values.tolist() == [32, 16, 8, 32]
