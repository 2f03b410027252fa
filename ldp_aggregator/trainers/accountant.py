"""Privacy budgets in exact arithmetic: how one epsilon is divided among queries, and who spends it.

Queries about disjoint groups of rows (the classes) compose in parallel and count once; all others add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from threading import RLock
from typing import Any, Final

from ldp_protocols.errors import LdpError
from ldp_protocols.exact import exact_epsilon


class BudgetError(LdpError, ValueError):
    """A query would spend more than what is left; nothing was drawn."""


class Accountant:
    """Budget of one epsilon: :meth:`spend` is called before noise is drawn, and refuses more than is left.

    Trainers that are given the same one share its epsilon: each books its whole fit here before it draws anything.
    Copies are the thing itself, as ``sklearn.base.clone`` and cross-validation make many. In another process nobody
    could tell what is spent here, so what arrives there has nothing left.

    Examples
    --------
    >>> from fractions import Fraction
    >>> budget = Accountant(1.0)
    >>> budget.spend("count", Fraction(1, 4))
    Fraction(1, 4)
    >>> budget.remaining
    Fraction(3, 4)
    >>> budget.spend("mean", Fraction(1))
    Traceback (most recent call last):
    ldp_aggregator.trainers.accountant.BudgetError: mean: needs epsilon 1, but 0.75 of 1 is left
    """

    def __init__(self, epsilon: float) -> None:
        self.total = checked_epsilon(epsilon)
        self._spent: dict[str, Fraction] = {}
        self._relation: str | None = None
        self._lock = RLock()

    @property
    def spent(self) -> Fraction:
        """The epsilon of all queries together."""
        with self._lock:
            return sum(self._spent.values(), Fraction(0))

    @property
    def remaining(self) -> Fraction:
        return self.total - self.spent

    def spend(self, query: str, epsilon: Fraction) -> Fraction:
        """Book ``epsilon`` for a query and return it. Raises BudgetError where it is not there."""
        if epsilon <= 0:
            raise ValueError(f"{query}: a query spends more than 0, not {epsilon}")
        with self._lock:
            if epsilon > self.remaining:
                raise BudgetError(
                    "budget-spent",
                    f"{query}: needs epsilon {float(epsilon):g}, but {float(self.remaining):g} of "
                    f"{float(self.total):g} is left",
                )
            self._spent[query] = self._spent.get(query, Fraction(0)) + epsilon
        return epsilon

    def spend_fit(self, trainer: str, epsilon: Fraction, relation: str) -> None:
        """Book a whole fit, of the same relation as the first. Raises BudgetError for another, or beyond the total."""
        with self._lock:
            if self._relation not in (None, relation):
                raise BudgetError(
                    "other-relation",
                    f"{trainer}: its relation is {relation}, but what this accountant has booked is under "
                    f"{self._relation}; the two do not add up, so give each relation an accountant of its own",
                )
            self.spend(trainer, epsilon)
            self._relation = relation

    def to_budget(self) -> dict[str, float]:
        """Tell people what each query spent."""
        with self._lock:
            return {query: float(epsilon) for query, epsilon in self._spent.items()}

    def __copy__(self) -> Accountant:
        return self

    def __deepcopy__(self, memo: object) -> Accountant:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _elsewhere, (self.total,)


class FitAccountant(Accountant):
    """The accountant of one fit. Its first query books all of ``epsilon`` with the accountant that trainers share."""

    def __init__(self, epsilon: float, shared: Accountant | None, trainer: str, relation: str) -> None:
        super().__init__(epsilon)
        self._shared = shared
        self._trainer = trainer
        self._of_fit = relation

    def spend(self, query: str, epsilon: Fraction) -> Fraction:
        if self._shared is not None:
            self._shared.spend_fit(self._trainer, self.total, self._of_fit)
            self._shared = None
        return super().spend(query, epsilon)


class _Copied(Accountant):
    """A shared accountant as it arrives in another process, or from a file: it refuses everything."""

    def spend(self, query: str, epsilon: Fraction) -> Fraction:
        raise BudgetError(
            "budget-spent",
            f"{query}: this accountant was copied into another process, which cannot know what was spent and so spends "
            "nothing; fit in one process, that is, with n_jobs=1",
        )

    @property
    def spent(self) -> Fraction:
        """All of it, as far as this process knows."""
        return self.total


def _elsewhere(total: Fraction) -> Accountant:
    accountant = _Copied(float(total))
    accountant.total = total
    return accountant


LABEL_SHARE: Final = Fraction(1, 5)
"""Least part of class counts where nothing else carries the class sizes; see :func:`allocate`."""


@dataclass(frozen=True)
class Allocation:
    """The epsilon of each query of a Naive Bayes training: class counts, one table, one moment of a number."""

    label: Fraction
    table: Fraction
    moment: Fraction


def allocate(
    epsilon: float,
    *,
    tables: int,
    gaussians: int,
    label: bool = True,
    numerical_share: float | None = None,
    even: bool = False,
) -> Allocation:
    """Divide ``epsilon`` among the class counts (where private), ``tables`` and two moments of each Gaussian feature.

    ``numerical_share`` None gives every query the same (Vaidya et al. 2013: epsilon / (1 + F_cat + 2 F_num)), except
    that class counts get a fifth where there are no tables, whose totals would carry the class sizes, too, unless
    ``even``. A number in (0, 1) gives that share to all moments together and the rest to the counts (Zafarani, Clifton
    2020, Figure 10).
    """
    total = checked_epsilon(epsilon)
    counts, moments = tables + label, 2 * gaussians
    if numerical_share is not None and not 0 < numerical_share < 1:
        raise ValueError(f"numerical_share must be above 0 and below 1, or None, not {numerical_share}")
    if numerical_share is None or not counts or not moments:
        each = total / max(counts + moments, 1)
        if even or tables or not label or not moments or each >= LABEL_SHARE * total:
            return Allocation(each, each, each)
        return Allocation(LABEL_SHARE * total, each, (1 - LABEL_SHARE) * total / moments)
    share = Fraction(numerical_share)
    return Allocation(total * (1 - share) / counts, total * (1 - share) / counts, total * share / moments)


def checked_epsilon(epsilon: float) -> Fraction:
    """Epsilon as the rational number it promises; ValueError unless it is finite and above 0."""
    if isinstance(epsilon, bool) or not isfinite(epsilon) or epsilon <= 0:
        raise ValueError(f"epsilon must be a finite number above 0 (1 is a common choice), not {epsilon!r}")
    return exact_epsilon(float(epsilon))
