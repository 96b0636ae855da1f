"""Markers that mean something: a test that needs a feature of the kernel is skipped where the feature is missing."""

import functools

import pytest


@functools.cache
def lacking(feature):
    from switch_model.bpf import requirements  # whether our own program loads is for the tests to say

    look = {"bpf": requirements.lacking, "namespaces": requirements.lacking_namespaces}
    return look[feature]()


def pytest_runtest_setup(item):
    for marker in item.iter_markers("needs_kernel"):
        for feature in marker.args:
            why = lacking(feature)
            if why:
                pytest.skip(f"no {feature}: {why}")
