"""The examples in the docstrings of classes that apps import run, and give what they say."""

import doctest
import sys

import pytest

from ldp_client import Classifier, Device, Policy
from ldp_client.manual import ManualDelivery
from ldp_protocols import Campaign


@pytest.mark.parametrize("example_class", [Device, Classifier, Policy, ManualDelivery, Campaign])
def test_the_examples_of_a_class_give_what_they_say(example_class):
    names = dict(vars(sys.modules[example_class.__module__]))
    [test] = doctest.DocTestFinder(recurse=False).find(example_class, globs=names)
    assert test.examples, "the docstring has no example"
    text = []
    assert not doctest.DocTestRunner().run(test, out=text.append).failed, "".join(text)
