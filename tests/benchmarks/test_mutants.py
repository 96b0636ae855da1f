"""The areas of ``benchmarks.mutants`` have code and tests: pytest refuses a folder that is gone, which is no kill."""

import pytest

from benchmarks.mutants.trials import AREAS, ROOT


@pytest.mark.parametrize("name", AREAS)
def test_all_code_and_tests_of_an_area_are_there(name):
    area = AREAS[name]
    assert any(any(ROOT.glob(pattern)) for pattern in area.code)
    assert all((ROOT / path).exists() for path in (*area.tests, *area.without))
