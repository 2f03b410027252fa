"""Documents that somebody has tampered with: nobody gets one past a device. Beside the refused ones of the vectors."""

import pytest
from credit_draft import ABSENT, DOCUMENT, DRAFT, Q, changed, document_of, encoded, names

from protocols import Campaign, DocumentError

INVALID = {
    (Q, 1, "parameters"): [[]],
    (Q, 1, "domain_size"): [1 << 40, 0],
    (Q, 1, "group"): [0, 10**6, -1],
    (Q, 0, "group"): [1],
    (Q, 1, "feature"): ["income", "secret", None],
    (Q, 1, "kind"): ["value", "label", "product"],
    (Q, 1, "encoding"): ["moment", "sign"],
    (Q, 3, "encoding"): ["index", "sign"],
    (Q, 3, "kind"): ["square"],
    (Q, 1, "mechanism"): ["laplace"],
    (Q, 1, "weight"): [-1, 1 << 31, True],
    (Q, 1, "comment"): ["hi"],
    (Q, 1): [None],
    (Q,): [ABSENT],
    ("features", 0, "values"): [["young", "old"]],
    ("features", 2, "bins"): [4],
    ("label", "classes"): [["yes", "no", "maybe"]],
}
TAMPERED = [
    ((Q, 0, "parameters", "q"), "1", "loss-above-epsilon"),
    ((Q, 1, "parameters", "p"), str((1 << 64) - 1), "loss-above-epsilon"),
    ((Q, 1, "parameters", "p"), -1, "invalid-parameters"),
    ((Q, 1, "parameters", "p"), 0.5, "invalid-parameters"),
    ((Q, 1, "parameters", "p"), ABSENT, "invalid-parameters"),
    ((Q, 1, "epsilon"), 0.9999999, "loss-above-epsilon"),
    (("privacy", "answers"), "all", "loss-above-epsilon"),
    ((Q, 1, "mechanism"), "de", "invalid-parameters"),
    *((place, value, "invalid-document") for place, values in INVALID.items() for value in values),
]


@pytest.mark.parametrize(("place", "value", "code"), TAMPERED, ids=names(TAMPERED))
def test_a_tampered_document_is_refused_with_its_code(place, value, code, code_of):
    assert code_of(DocumentError, Campaign.parse, encoded(changed(DOCUMENT, place, value))) == code


@pytest.mark.parametrize("answers", ["one", "all"])
def test_questions_that_keep_their_own_epsilon_but_break_the_total_are_refused(answers):
    """The parameters are those of epsilon 1; the total says a little less than what they add up to."""
    privacy = {"epsilon": 1.0, "discrete": "oue", "continuous": "laplace", "answers": answers}
    document = document_of(Campaign.compile({**DRAFT, "privacy": privacy}))
    for promised, accepted in ((1.0, True), (0.999, False)):
        tampered = encoded(changed(document, ("privacy", "epsilon"), promised))
        if accepted:
            assert Campaign.parse(tampered).realised_epsilon <= promised
        else:
            with pytest.raises(DocumentError, match="declared total") as refused:
                Campaign.parse(tampered)
            assert refused.value.code == "loss-above-epsilon"


def test_with_all_answers_the_worst_question_of_every_group_counts(code_of):
    """Doubling the loss of only the second question of the Gaussian feature must not go unnoticed."""
    document = document_of(
        Campaign.compile({**DRAFT, "privacy": {"epsilon": 1.0, "answers": "all", "continuous": "laplace"}})
    )
    square = document[Q][4]
    assert square["kind"] == "square"
    louder = changed(square, ("parameters", "scale"), str(int(square["parameters"]["scale"]) // 2))
    louder["epsilon"] = 2 * louder["epsilon"]
    assert code_of(DocumentError, Campaign.parse, encoded(changed(document, (Q, 4), louder))) == "loss-above-epsilon"
