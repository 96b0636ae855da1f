"""Lines between few sizes, with jumps and single sizes where they are."""

import random

import pytest

from commsim.costmodel.refinement import SizeRefinement, changes, random_sizes

HIGH = 2**24


def refined(function, label=lambda _: "", tolerance=0.01):
    found = SizeRefinement(lambda size: (function(size),), 1, HIGH, tolerance, changes(label, 1, HIGH))
    found.refine()
    return found


def largest_error(found, sizes):
    few = found.fewest()
    around = lambda size: (max(x for x in few if x < size), min(x for x in few if x > size))  # noqa: E731
    return max(0.0 if size in few else found.error(size, around(size)) for size in sizes)


def test_a_line_takes_two_sizes():
    assert refined(lambda size: 1e-5 + size * 1e-9).fewest() == [1, HIGH]


def test_a_jump_is_two_sizes_that_follow_each_other():
    found = refined(lambda size: 1e-5 + size * 1e-9 + (2e-4 if size >= 700_001 else 0))
    assert {700_000, 700_001} <= set(found.fewest())
    assert len(found.fewest()) == 4


def test_single_sizes_that_take_less_are_kept_with_both_sides():
    train = [4096 * k for k in range(1, 20)]
    found = refined(lambda size: 4e-5 if size in train else 5e-5)
    few = set(found.fewest())
    assert all({size - 1, size, size + 1} <= few for size in train)


def test_a_staircase_keeps_the_tolerance_everywhere():
    found = refined(lambda size: 1e-4 + -(-size // 65_536) * 1e-5)
    sizes = [*random_sizes(random.Random(3), 400, 2, HIGH - 1), *range(131_000, 131_100)]
    assert largest_error(found, sizes) <= 0.01
    assert len(found.fewest()) < 400


def test_a_jump_right_behind_a_size_that_is_kept_is_found():
    step, each = 2**18, 0.05  # a part of what a step takes comes at once, as a round of a library's chunks does
    found = refined(lambda size: 0.3 + each * (0.67 * size / step + 0.33 * ((size - 1) // step)))
    assert largest_error(found, [k * step + d for k in range(1, HIGH // step) for d in (1, 100, 5000)]) <= 0.01


def test_a_change_of_the_label_is_found_to_the_byte():
    found = changes(lambda size: "small" if size <= 777 else "middle" if size < 123_457 else "large", 1, HIGH)
    assert found == [(1, "small"), (778, "middle"), (123_457, "large")]


def test_what_a_check_finds_is_added():
    odd = 3_333_331
    found = refined(lambda size: 2e-5 if size == odd else 1e-5)
    assert found.wrong_at([odd]) == [(pytest.approx(0.5), odd)]
    assert found.add(odd)
    assert {odd - 1, odd, odd + 1} <= set(found.fewest())
    assert not found.add(odd)
