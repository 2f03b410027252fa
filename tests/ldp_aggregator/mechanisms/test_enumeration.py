"""Enumeration from the definitions alone finds the ratios that mechanisms prove."""

import json
from fractions import Fraction

import pytest
from drafts import draft, number, text

from ldp_aggregator.mechanisms import ENUMERATION, analysis_of, verify_thoroughly, worst_case
from protocols import Campaign
from protocols.document.verification import CLOSED_FORM, verify
from protocols.exact import ONE, exact_epsilon
from protocols.mechanisms import DISCRETE, MOMENTS, DirectEncoding, NoisyVector

ALL = {**DISCRETE, **MOMENTS}


def campaign_of(**privacy):
    features = text("u", "1", "2", "missing"), number("v"), number("w", -3, 8, bins=40)
    label = {"name": "y", "classes": ["a", "b", "c"]}
    return Campaign.compile(draft(*features, label=label, privacy={"epsilon": 1.0, **privacy}))


@pytest.mark.parametrize("name", [name for name, kind in ALL.items() if not issubclass(kind, NoisyVector)])
def test_enumeration_and_closed_form_give_the_same_ratio(name):
    for size in range(2, 9):
        for epsilon in (0.01, 1.0, 6.0):
            mechanism = ALL[name].make(size, exact_epsilon(epsilon))
            assert worst_case(mechanism) == (mechanism.worst_case(), ENUMERATION)


def test_a_device_enumerates_nothing_and_finds_what_the_enumeration_finds_whose_json_form_is_plain_data():
    campaign = campaign_of(discrete="oue", answers="all")
    thorough, quick = verify_thoroughly(campaign), verify(campaign)
    assert {check.method for check in quick.questions} == {CLOSED_FORM}
    assert ENUMERATION in {check.method for check in thorough.questions}
    assert [check.worst.loss for check in quick.questions] == [check.worst.loss for check in thorough.questions]
    assert quick.loss == thorough.loss
    told = verify_thoroughly(campaign_of(discrete="the")).to_json()
    assert json.loads(json.dumps(told)) == told
    assert told["holds"]
    assert told["realised_epsilon"] <= told["epsilon"]
    assert {row["method"] for row in told["questions"]} == {ENUMERATION, CLOSED_FORM}


def test_large_domains_take_the_closed_form_and_a_mechanism_that_excludes_an_output_has_no_finite_ratio():
    assert analysis_of(DISCRETE["oue"].make(8, Fraction(1))).law_size == 8 * 2**8
    assert analysis_of(DISCRETE["she"].make(2, Fraction(1))).law_size == 0
    assert analysis_of(DISCRETE["oue"].make(65536, Fraction(1))).law_size == 0
    assert worst_case(DISCRETE["oue"].make(1024, Fraction(1)))[1] == CLOSED_FORM
    assert worst_case(DISCRETE["ss"].make(1024, Fraction(1)))[1] == CLOSED_FORM
    for prove in (worst_case, DirectEncoding.worst_case):
        with pytest.raises(ZeroDivisionError):
            prove(DirectEncoding(4, ONE))
