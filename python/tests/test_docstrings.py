"""Every example in a docstring runs and says what it says it does."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import neuralcb

MODULES = ["neuralcb", *(f"neuralcb.{m.name}" for m in pkgutil.iter_modules(neuralcb.__path__) if m.name != "_neuralcb")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    if name == "neuralcb.ray":
        pytest.importorskip("ray")
    found = doctest.testmod(importlib.import_module(name))
    assert found.failed == 0


def test_every_public_class_and_function_has_an_example_or_says_whose_it_is():
    silent = []
    for name in neuralcb.__all__:
        doc = getattr(neuralcb, name).__doc__ or ""
        if not name.startswith("__") and name != "ope" and not doc.strip():
            silent.append(name)
    assert silent == []
