"""The common part of all trainers: the schema, the table, one accountant, the model and the guarantee."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d, validate_data

from ldp_aggregator.guarantees import Guarantee
from ldp_aggregator.learning import frames
from ldp_aggregator.learning.naive_bayes import NaiveBayes, framed
from ldp_aggregator.trainers.accountant import Accountant, FitAccountant, checked_epsilon
from ldp_aggregator.trainers.randomness import PrivacyWarning, RandomState, coins_of, warn_of_second_fit
from ldp_aggregator.trainers.schemas import Schema, schema_of_table
from ldp_aggregator.trainers.sensitivities import ADD_REMOVE, RELATIONS, REPLACE, checked_relation
from ldp_aggregator.trainers.statistics import Array, Integers
from ldp_protocols.document.model import Model
from ldp_protocols.exact import Coins

SOUND: Final = "sound"
PUBLISHED: Final = "published"

LEAKED_SCHEMA: Final = "classes, values and bounds were read off the table; give a schema for a guarantee"


class Training(NamedTuple):
    """The inputs of one fit."""

    schema: Schema
    accountant: Accountant
    coins: Coins


class PrivateNaiveBayes(NaiveBayes):
    """Naive Bayes from a table that somebody holds, under central differential privacy.

    Subclasses say in :meth:`_train` how the noise comes in. Tables may be DataFrames (of pandas, or of a library that
    has ``to_pandas``) or, with as many columns as the schema has features and in their order, arrays. There is no
    ``sample_weight``: the promise is for a row that counts once.

    Attributes
    ----------
    classes_
        Classes, shape (k,), sorted, in the type of the labels that were learned from; columns are in this order. The
        model's own order is that of the schema.
    model_
        The fitted :class:`ldp_protocols.document.model.Model`; ``to_json`` is what devices download.
    guarantee_
        What the training promises: epsilon, delta, relation, what is public.
    budget_
        What each query spent, by name; together ``epsilon``.
    """

    def __init__(
        self,
        schema: Mapping[str, Any] | None = None,
        *,
        epsilon: float = 1.0,
        relation: str = ADD_REMOVE,
        variant: str = SOUND,
        numerical_share: float | None = None,
        smoothing: float = 1.0,
        variance_floor: float = 1e-3,
        accountant: Accountant | None = None,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(schema, smoothing=smoothing, variance_floor=variance_floor)
        self.epsilon = epsilon
        self.relation = relation
        self.variant = variant
        self.numerical_share = numerical_share
        self.accountant = accountant
        self.random_state = random_state

    def fit(self, X: pd.DataFrame, y: Sequence[object] | pd.Series[Any] | NDArray[Any]) -> PrivateNaiveBayes:
        """Learn under the stated privacy. Rows of a class that is not declared count in none.

        Raises ValueError for a parameter or a column that is not as declared; never for a row.
        """
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        X = frames.as_pandas(X)
        # The names scikit-learn keeps: those of a DataFrame whose columns are all texts.
        named = isinstance(X, pd.DataFrame) and all(isinstance(name, str) for name in X.columns)
        if self.schema is None:
            values, labels = _checked(X, y)
            classes, codes = np.unique(labels, return_inverse=True)
            if len(classes) < 2:
                raise ValueError(f"a classifier needs at least two classes; y holds only one class, {classes[0]!r}")
            frame = framed(X if isinstance(X, pd.DataFrame) else values)
            schema = schema_of_table(frame, len(classes))
            warnings.warn(LEAKED_SCHEMA, PrivacyWarning, stacklevel=2)
        else:
            schema = Schema.read(self.schema)
            frame = framed(X, schema.input_names)
            codes, classes = frames.classes_of(schema.label, y, len(frame))
        training = self._begin(schema)
        warn_of_second_fit(X, y, accountant=self.accountant, random_state=self.random_state)
        model, guarantee = self._train(training, frame, codes)
        self._finish(training, model, guarantee, classes, leaked=self.schema is None)
        if self.schema is None:
            self.n_features_in_ = frame.shape[1]
            if named:
                self.feature_names_in_ = np.array(X.columns, dtype=object)
            else:
                del self.feature_names_in_
        return self

    def _joint_log_likelihood(self, X: pd.DataFrame) -> Array:
        check_is_fitted(self, "model_")
        X = frames.as_pandas(X)
        textual = isinstance(X, pd.DataFrame) and not all(pd.api.types.is_numeric_dtype(dtype) for dtype in X.dtypes)
        if self.schema is None and not textual:
            # scikit-learn's checks of a table to predict for, where the schema was read off the training table.
            X = validate_data(self, X, reset=False, dtype=np.float64)
        return super()._joint_log_likelihood(X)

    @abstractmethod
    def _train(self, training: Training, frame: pd.DataFrame, classes: Integers) -> tuple[Model, Guarantee]:
        """The model, and what its training guarantees."""

    def _begin(self, schema: Schema) -> Training:
        checked_relation(self.relation)
        if self.variant not in (SOUND, PUBLISHED):
            raise ValueError(f"variant must be {SOUND} or {PUBLISHED}, not {self.variant!r}")
        if not self.variance_floor > 0:
            raise ValueError(f"variance_floor must be above 0 (0.001 is usual), not {self.variance_floor}")
        if not self.smoothing >= 0:
            raise ValueError(f"smoothing must be at least 0, not {self.smoothing}")
        checked_epsilon(self.epsilon)
        if self.accountant is not None and (self.schema is None or self.variant == PUBLISHED):
            raise ValueError(
                "a shared accountant adds up guarantees, and this fit would not keep epsilon: give it a schema and the "
                f"variant {SOUND}"
            )
        accountant = FitAccountant(self.epsilon, self.accountant, type(self).__name__, self.relation)
        return Training(schema, accountant, coins_of(self.random_state))

    def _finish(
        self,
        training: Training,
        model: Model,
        guarantee: Guarantee,
        classes: NDArray[Any] | None = None,
        *,
        leaked: bool = False,
    ) -> None:
        if leaked:
            guarantee = Guarantee(None, 0.0, f"none: {LEAKED_SCHEMA}", ())
        document = {**model.training, "trainer": type(self).__name__, "guarantee": guarantee.to_json()}
        self._adopt(
            Model(model.label, model.classes, model.prior, model.likelihoods, model.projection, document),
            guarantee,
            classes,
        )
        self.budget_ = training.accountant.to_budget()
        if self.variant == PUBLISHED:
            warnings.warn(f"as published, this guarantees {guarantee}", PrivacyWarning, stacklevel=3)

    def _sound_guarantee(self, relation: str) -> Guarantee:
        return sound_guarantee(self.epsilon, relation)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.schema is not None
        tags.non_deterministic = self.random_state is None
        return tags


def sound_guarantee(epsilon: float, relation: str) -> Guarantee:
    """Pure epsilon-DP under a relation, and what that takes for public."""
    public: tuple[str, ...] = ("the schema: classes, values, bounds, and of what type labels are",)
    if relation == REPLACE:
        public += ("the labels and class counts",)
    return Guarantee(float(epsilon), 0.0, RELATIONS[relation], public)


def _checked(X: Any, y: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Tables without a schema are scikit-learn's: numbers, finite, at least one row."""
    check_classification_targets(y)
    labels = column_or_1d(y, warn=True)
    values: NDArray[Any]
    if isinstance(X, pd.DataFrame) and not all(pd.api.types.is_numeric_dtype(dtype) for dtype in X.dtypes):
        values = X.to_numpy()
    else:
        values = check_array(X, dtype=np.float64)
    if len(values) != len(labels):
        raise ValueError(f"X has {len(values)} rows and y has {len(labels)}; they must be equal")
    return values, labels
