"""The examples in the docstrings of classes that people import run, and give what they say."""

import doctest
import sys

import pytest

from ldp_aggregator.estimation.estimates import Estimates
from ldp_aggregator.trainers import Accountant, GlobalSensitivityNB, PrivateKMeans, SufficientStatisticsNB
from ldp_client import Classifier, Device, Policy
from ldp_client.manual import ManualDelivery
from ldp_protocols import Campaign

OF_APPS = (Device, Classifier, Policy, ManualDelivery, Campaign)
OF_OPERATORS = (Estimates, Accountant, GlobalSensitivityNB, PrivateKMeans, SufficientStatisticsNB)


@pytest.mark.parametrize("example_class", [*OF_APPS, *OF_OPERATORS])
def test_the_examples_of_a_class_give_what_they_say(example_class):
    names = dict(vars(sys.modules[example_class.__module__]))
    [test] = doctest.DocTestFinder(recurse=False).find(example_class, globs=names)
    assert test.examples, "the docstring has no example"
    text = []
    assert not doctest.DocTestRunner().run(test, out=text.append).failed, "".join(text)
