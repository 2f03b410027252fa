"""Documents that somebody has tampered with: nobody gets one past a device. Beside the refused ones of the vectors."""

import pytest
from credit_draft import ABSENT, DOCUMENT, DRAFT, Q, changed, document_of, encoded, names

from protocols import Campaign, DocumentError

TAMPERED = [
    ((Q, 0, "parameters", "q"), "1", "loss-above-epsilon"),
    ((Q, 1, "parameters", "p"), str((1 << 64) - 1), "loss-above-epsilon"),
    ((Q, 1, "parameters", "p"), -1, "invalid-parameters"),
    ((Q, 1, "parameters", "p"), 0.5, "invalid-parameters"),
    ((Q, 1, "parameters", "p"), ABSENT, "invalid-parameters"),
    ((Q, 1, "parameters"), [], "invalid-document"),
    ((Q, 1, "epsilon"), 0.9999999, "loss-above-epsilon"),
    (("privacy", "answers"), "all", "loss-above-epsilon"),
    ((Q, 1, "domain_size"), 1 << 40, "invalid-document"),
    ((Q, 1, "domain_size"), 0, "invalid-document"),
    ((Q, 1, "group"), 0, "invalid-document"),
    ((Q, 1, "group"), 10**6, "invalid-document"),
    ((Q, 1, "group"), -1, "invalid-document"),
    ((Q, 0, "group"), 1, "invalid-document"),
    ((Q, 1, "feature"), "income", "invalid-document"),
    ((Q, 1, "feature"), "secret", "invalid-document"),
    ((Q, 1, "feature"), None, "invalid-document"),
    ((Q, 1, "kind"), "value", "invalid-document"),
    ((Q, 1, "kind"), "label", "invalid-document"),
    ((Q, 1, "kind"), "product", "invalid-document"),
    ((Q, 1, "encoding"), "moment", "invalid-document"),
    ((Q, 1, "encoding"), "sign", "invalid-document"),
    ((Q, 3, "encoding"), "index", "invalid-document"),
    ((Q, 3, "encoding"), "sign", "invalid-document"),
    ((Q, 3, "kind"), "square", "invalid-document"),
    ((Q, 1, "mechanism"), "laplace", "invalid-document"),
    ((Q, 1, "mechanism"), "de", "invalid-parameters"),
    ((Q, 1, "weight"), -1, "invalid-document"),
    ((Q, 1, "weight"), 1 << 31, "invalid-document"),
    ((Q, 1, "weight"), True, "invalid-document"),
    ((Q, 1, "comment"), "hi", "invalid-document"),
    ((Q, 1), None, "invalid-document"),
    ((Q,), ABSENT, "invalid-document"),
    (("features", 0, "values"), ["young", "old"], "invalid-document"),
    (("features", 2, "bins"), 4, "invalid-document"),
    (("label", "classes"), ["yes", "no", "maybe"], "invalid-document"),
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
