"""The examples in the docstrings of classes that people import run, and give what they say."""

import doctest

import pytest

from ldp_aggregator.estimation.estimates import Estimates
from ldp_aggregator.trainers import (
    Accountant,
    GlobalSensitivityNB,
    PrivateKMeans,
    SufficientStatisticsNB,
)


@pytest.mark.parametrize(
    "example_class", [Estimates, Accountant, GlobalSensitivityNB, PrivateKMeans, SufficientStatisticsNB]
)
def test_the_examples_of_a_class_give_what_they_say(example_class):
    module = __import__(example_class.__module__, fromlist=["__doc__"])
    [test] = doctest.DocTestFinder(recurse=False).find(example_class, globs=dict(vars(module)))
    assert test.examples, "the docstring has no example"
    text = []
    assert not doctest.DocTestRunner().run(test, out=text.append).failed, "".join(text)
