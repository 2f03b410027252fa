"""Budgets are divided and spent exactly, also by fits that share an accountant, and before anything is drawn."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from copy import copy, deepcopy
from fractions import Fraction
from unittest.mock import Mock

import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from ldp_aggregator.trainers import (
    FederatedNB,
    GlobalSensitivityNB,
    PrivacyWarning,
    PrivateKMeans,
    SmoothSensitivityNB,
    SufficientStatisticsNB,
)
from ldp_aggregator.trainers.accountant import Accountant, BudgetError, allocate
from ldp_protocols.exact import exact_epsilon


def test_what_is_too_much_is_refused_and_not_booked():
    accountant = Accountant(1.0)
    accountant.spend("counts", Fraction(2, 3))
    with pytest.raises(BudgetError, match=r"sums: needs epsilon 0.5, but 0.333333 of 1 is left"):
        accountant.spend("sums", Fraction(1, 2))
    assert accountant.spent == Fraction(2, 3)
    accountant.spend("sums", Fraction(1, 3))
    assert accountant.remaining == 0
    assert accountant.to_budget() == {"counts": pytest.approx(2 / 3), "sums": pytest.approx(1 / 3)}


def test_what_spends_nothing_or_has_no_end_is_refused():
    with pytest.raises(ValueError, match="more than 0"):
        Accountant(1.0).spend("counts", Fraction(0))
    for epsilon in (0, -1.0, float("nan"), float("inf"), True):
        with pytest.raises(ValueError, match="finite number above 0"):
            Accountant(epsilon)
    for share in (0.0, 1.0, -0.5):
        with pytest.raises(ValueError, match="numerical_share must be above 0 and below 1"):
            allocate(1.0, tables=1, gaussians=1, numerical_share=share)


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0, 7.7])
@pytest.mark.parametrize("share", [None, 0.25, 0.9])
@pytest.mark.parametrize(("tables", "gaussians", "label"), [(8, 6, True), (0, 3, True), (4, 0, True), (3, 2, False)])
def test_the_pieces_add_up_to_epsilon_exactly(epsilon, share, tables, gaussians, label):
    parts = allocate(epsilon, tables=tables, gaussians=gaussians, label=label, numerical_share=share)
    spent = label * parts.label + tables * parts.table + 2 * gaussians * parts.moment
    assert spent == exact_epsilon(epsilon)


@pytest.mark.parametrize(
    ("tables", "gaussians", "even", "label"),
    [
        (0, 8, False, Fraction(1, 5)),
        (0, 8, True, Fraction(1, 17)),
        (1, 8, False, Fraction(1, 18)),
        (0, 1, False, Fraction(1, 3)),
    ],
)
def test_class_counts_get_a_fifth_where_no_table_carries_the_class_sizes(tables, gaussians, even, label):
    parts = allocate(1.0, tables=tables, gaussians=gaussians, even=even)
    assert parts.label == label
    assert parts.label + tables * parts.table + 2 * gaussians * parts.moment == 1


def test_the_numerical_share_is_what_the_moments_get():
    parts = allocate(2.0, tables=3, gaussians=5, numerical_share=0.75)
    assert (10 * parts.moment, parts.label, parts.table) == (Fraction(3, 2), Fraction(1, 8), Fraction(1, 8))


pytestmark = pytest.mark.filterwarnings("ignore::ldp_aggregator.trainers.randomness.PrivacyWarning")

TRAINERS = (SufficientStatisticsNB, GlobalSensitivityNB, SmoothSensitivityNB, FederatedNB, PrivateKMeans)


@pytest.mark.parametrize("trainer", TRAINERS)
def test_fits_are_booked_and_refused_beyond_the_total(schema, table, trainer):
    accountant = Accountant(1.0)
    for fits in (1, 2):
        fitted = trainer(schema, epsilon=0.4, accountant=accountant).fit(*table)
        assert accountant.to_budget() == {trainer.__name__: pytest.approx(0.4 * fits)}
        assert (fitted.guarantee_.epsilon, sum(fitted.budget_.values())) == (0.4, pytest.approx(0.4))
    with pytest.raises(BudgetError, match=rf"{trainer.__name__}: needs epsilon 0.4, but 0.2 of 1 is left"):
        trainer(schema, epsilon=0.4, accountant=accountant).fit(*table)
    assert accountant.to_budget() == {trainer.__name__: pytest.approx(0.8)}


@pytest.mark.parametrize("trainer", TRAINERS)
def test_nothing_is_drawn_before_a_refusal(schema, table, trainer, monkeypatch):
    """Any draw is an error, wherever the coins come from; also where there are moments only."""
    drawn = Mock(side_effect=AssertionError("noise was drawn"))
    monkeypatch.setattr("ldp_aggregator.trainers.randomness.word_array", drawn)
    monkeypatch.setattr("ldp_protocols.exact.SystemCoins.words", drawn)
    with pytest.raises(BudgetError):
        trainer(schema, epsilon=2.0, accountant=Accountant(1.0)).fit(*table)
    with pytest.raises(AssertionError, match="noise was drawn"):
        trainer(schema, epsilon=0.5, accountant=Accountant(1.0)).fit(*table)
    if trainer in (SmoothSensitivityNB, GlobalSensitivityNB):
        numbers = {**schema, "features": schema["features"][1:2]}
        with pytest.raises(BudgetError):
            trainer(numbers, epsilon=2.0, relation="replace", accountant=Accountant(1.0)).fit(*table)


def test_trainers_of_two_kinds_and_the_fits_of_a_cross_validation_spend_from_one_accountant(schema, table):
    accountant = Accountant(2.0)
    GlobalSensitivityNB(schema, epsilon=1.0, accountant=accountant).fit(*table)
    trainer = SufficientStatisticsNB(schema, epsilon=0.2, accountant=accountant)
    cross_val_score(trainer, *table, cv=5)
    assert accountant.to_budget() == {"GlobalSensitivityNB": 1.0, "SufficientStatisticsNB": 1.0}
    with pytest.raises(BudgetError):
        trainer.fit_chunks([table])
    with pytest.raises(BudgetError):
        cross_val_score(trainer, *table, cv=2, error_score="raise")
    search = GridSearchCV(clone(trainer).set_params(accountant=Accountant(0.7)), {"smoothing": [0.5, 1.0]}, cv=2)
    with pytest.raises(ValueError, match=r"needs epsilon 0\.2, but 0\.1 of 0.7 is left"):
        search.set_params(error_score="raise").fit(*table)


def test_a_second_fit_on_a_table_warns_unless_an_accountant_adds_up(schema, table):
    frame, labels = (one.copy() for one in table)
    SufficientStatisticsNB(schema).fit(frame, labels)
    for again in (SufficientStatisticsNB(schema, epsilon=0.1), GlobalSensitivityNB(schema)):
        for given in ((frame, list(labels)), (frame.copy(), labels)):
            with pytest.warns(PrivacyWarning, match="was learned from before"):
                again.fit(*given)
    SufficientStatisticsNB(schema, accountant=Accountant(1.0)).fit(frame, labels)
    # Equal rows in another object: a warning that read them would tell neighbouring tables apart.
    SufficientStatisticsNB(schema).fit(frame.copy(), labels.copy())
    SufficientStatisticsNB(schema).fit(frame.copy(), list(labels))


def test_threads_cannot_overspend(schema, table):
    accountant = Accountant(1.0)

    def fit(_):
        try:
            SufficientStatisticsNB(schema, epsilon=0.1, accountant=accountant).fit(*table)
        except BudgetError:
            return 0
        return 1

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(fit, range(16))) == 10
    assert accountant.remaining == 0


def test_clones_and_copies_are_of_one_accountant_and_what_arrives_in_another_process_has_nothing_left(schema, table):
    accountant = Accountant(3.0)
    trainer = SufficientStatisticsNB(schema, accountant=accountant)
    assert trainer.get_params()["accountant"] is accountant
    for one in (clone(trainer), clone(make_pipeline(trainer)).steps[0][1], deepcopy(trainer), copy(trainer)):
        assert one.accountant is accountant
    elsewhere = pickle.loads(pickle.dumps(trainer.fit(*table)))
    assert (elsewhere.predict(table[0]) == trainer.predict(table[0])).all(), "it still predicts"
    with pytest.raises(BudgetError, match=r"copied into another process.*n_jobs=1"):
        elsewhere.fit(*table)
    assert accountant.remaining == 2, "the original counts on"


def test_a_fit_that_fails_before_its_queries_spends_nothing_and_relations_do_not_add_up(schema, table):
    accountant = Accountant(2.0)
    with pytest.raises(ValueError, match="no column 'colour'"):
        SufficientStatisticsNB(schema, accountant=accountant).fit(table[0].drop(columns="colour"), table[1])
    assert accountant.spent == 0
    GlobalSensitivityNB(schema, relation="replace", accountant=accountant).fit(*table)
    with pytest.raises(BudgetError, match="its relation is add-remove, but what this accountant has booked is under"):
        GlobalSensitivityNB(schema, accountant=accountant).fit(*table)
    assert accountant.spent == 1


@pytest.mark.parametrize("trainer", [GlobalSensitivityNB, SmoothSensitivityNB, FederatedNB])
def test_what_keeps_no_epsilon_is_not_booked(schema, table, trainer):
    accountant = Accountant(2.0)
    for parameters in ({"schema": schema, "variant": "published"}, {}):
        with pytest.raises(ValueError, match="this fit would not keep epsilon"):
            trainer(**parameters, accountant=accountant).fit(*table)
    assert accountant.spent == 0


def test_a_fit_that_was_refused_decides_no_relation():
    shared = Accountant(1.0)
    with pytest.raises(BudgetError):
        shared.spend_fit("a", Fraction(2), "replace")
    shared.spend_fit("b", Fraction(1, 2), "add-remove")
    with pytest.raises(BudgetError, match="under add-remove"):
        shared.spend_fit("c", Fraction(1, 4), "replace")
