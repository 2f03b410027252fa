"""Naive Bayes over discrete and Gaussian features: the one model that every training path produces.

``fit`` learns it from a table without any privacy (the baseline); ``train`` in :mod:`ldp_aggregator.learning.training`
builds it from a tally. ``to_json`` is what devices download.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ldp_aggregator.estimation.cells import axes_or_new, plot_normals, plot_shares
from ldp_aggregator.guarantees import NO_PRIVACY_RELATION, Guarantee
from ldp_aggregator.learning import frames
from ldp_protocols.document.authored import asked_features
from ldp_protocols.document.model import DiscreteLikelihood, GaussianLikelihood, Likelihood, Model
from ldp_protocols.document.schema import MOST_FEATURES, Label, Projection, read_features, read_label, read_projection
from ldp_protocols.errors import DraftError
from ldp_protocols.features import Feature, NumericFeature
from ldp_protocols.fields import Fields

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]
Schema = tuple[Label, tuple[Feature, ...], Projection | None]

NON_PRIVATE: Final = Guarantee(None, 0.0, NO_PRIVACY_RELATION, ())


class NaiveBayes(ClassifierMixin, BaseEstimator):
    """Naive Bayes classifier of a campaign's schema.

    Parameters
    ----------
    schema
        A draft (or a campaign document) as a mapping, of which ``label`` and ``features`` are used. None takes text
        columns value by value and numeric columns as Gaussian, with the values and bounds of the training table: fine
        for a table of your own, never for private data.
    smoothing
        Pseudo-count added to every (value, class) cell of ``fit``; 0 keeps exact shares.
    variance_floor
        Least variance of a Gaussian feature, relative to (high - low)^2.

    Attributes
    ----------
    classes_
        Classes, shape (k,), sorted, in the type of the labels that were learned from; columns are in this order. The
        model's own order is that of the schema.
    model_
        The fitted :class:`ldp_protocols.document.model.Model`.
    guarantee_
        What privacy the training gave; of ``fit``: none.
    """

    def __init__(
        self, schema: Mapping[str, Any] | None = None, *, smoothing: float = 1.0, variance_floor: float = 1e-9
    ) -> None:
        self.schema = schema
        self.smoothing = smoothing
        self.variance_floor = variance_floor

    def fit(self, X: pd.DataFrame, y: Sequence[object] | pd.Series[Any] | NDArray[Any]) -> NaiveBayes:
        """Learn from a table without privacy. Rows whose class is not declared are refused with a ValueError."""
        column = frames.as_column(y)
        if self.schema is None:
            frame = framed(X)
            label, features, projection = _schema_from_table(frame, column)
        else:
            label, features, projection = read_schema(self.schema)
            frame = framed(X, input_names(features, projection))
        classes, names = frames.classes_of(label, y, len(frame))
        if len(classes) == 0:
            raise ValueError("a model needs at least one row to learn from")
        if (classes < 0).any():
            unknown = column.iloc[int(np.argmax(classes < 0))]
            raise ValueError(f"y holds {unknown!r}; the declared classes are {', '.join(label.classes)}")
        table = frames.with_outputs(projection, frame)
        counts = np.bincount(classes, minlength=len(label.classes))
        likelihoods = [
            self._fit_feature(feature, frames.column_of(table, feature), classes, len(counts)) for feature in features
        ]
        prior = counts / counts.sum()
        model = Model(
            label.name, label.classes, tuple(prior.tolist()), tuple(likelihoods), projection, {"rows": len(frame)}
        )
        self._adopt(model, NON_PRIVATE, names)
        return self

    @classmethod
    def from_model(cls, model: Model, guarantee: Guarantee = NON_PRIVATE) -> NaiveBayes:
        """A fitted classifier around a model that was trained elsewhere."""
        classifier = cls()
        classifier._adopt(model, guarantee)
        return classifier

    @classmethod
    def from_json(cls, text: bytes | str) -> NaiveBayes:
        """The inverse of :meth:`to_json`. Raises DocumentError, which names the field."""
        model = Model.from_json(text)
        stated = model.training.get("guarantee")
        return cls.from_model(model, NON_PRIVATE if stated is None else Guarantee.from_json(stated))

    def to_json(self) -> str:
        """The model document that devices download."""
        check_is_fitted(self, "model_")
        return self.model_.to_json()

    def plot(self, feature: str, axes: Axes | None = None) -> Axes:
        """Draw a feature's P(value | class), or density. KeyError for an unknown one, LdpError without matplotlib."""
        check_is_fitted(self, "model_")
        likelihood = {one.feature.name: one for one in self.model_.likelihoods}[feature]
        axes, classes = axes_or_new(axes), self.model_.classes
        if isinstance(likelihood, GaussianLikelihood):
            low, high = float(likelihood.feature.low), float(likelihood.feature.high)
            plot_normals(axes, low, high, classes, likelihood.mean, likelihood.variance)
            axes.set(xlabel=feature, ylabel="density in each class")
        else:
            plot_shares(axes, likelihood.feature.names, classes, np.asarray(likelihood.table))
            axes.set(xlabel="P(value | class)", ylabel=feature)
        axes.legend(title=self.model_.label)
        return axes

    def predict(self, X: pd.DataFrame) -> NDArray[Any]:
        """The most probable class of every row; by the prior where all are impossible, of equals the first."""
        said = self.scores(X).argmax(axis=1)  # First: it says so where nothing is fitted.
        return np.asarray(self.classes_[np.argsort(self._order)[said]])

    def predict_proba(self, X: pd.DataFrame) -> Array:
        """P(class | row), shape (rows, k), as ``classes_``. Where every class is impossible, the model's prior."""
        return np.asarray(softmax(self.scores(X), axis=1)[:, self._order])

    def predict_joint_log_proba(self, X: pd.DataFrame) -> Array:
        """ln P(class) + the sum of ln P(value | class), shape (rows, k), as ``classes_``, over the features with a
        usable value.
        """
        return self._joint_log_likelihood(X)[:, self._order]

    def _joint_log_likelihood(self, X: pd.DataFrame) -> Array:
        """The same in the model's order of classes."""
        check_is_fitted(self, "model_")
        features = tuple(likelihood.feature for likelihood in self.model_.likelihoods)
        frame = framed(X, input_names(features, self.model_.projection))
        table = frames.with_outputs(self.model_.projection, frame)
        with np.errstate(divide="ignore"):
            scores = np.tile(np.log(self.model_.prior), (len(table), 1))
            for likelihood in self.model_.likelihoods:
                scores += _log_likelihood(likelihood, frames.column_of(table, likelihood.feature))
        return scores

    def scores(self, X: pd.DataFrame) -> Array:
        """Joint log likelihood, shape (rows, k), classes in the order of the *model*; the log prior in rows where every
        class is impossible.
        """
        scores = self._joint_log_likelihood(X)
        with np.errstate(divide="ignore"):
            scores[np.isneginf(scores).all(axis=1)] = np.log(self.model_.prior)
        return scores

    def _adopt(self, model: Model, guarantee: Guarantee, classes: NDArray[Any] | None = None) -> None:
        """``classes`` are the model's, in its order, as the labels have them; None takes their names."""
        self.model_ = model
        names = np.array(model.classes, dtype=object) if classes is None else classes
        self._order = np.argsort(names, kind="stable")
        self.classes_ = names[self._order]
        self.class_prior_ = np.array(model.prior)[self._order]
        columns = input_names(tuple(one.feature for one in model.likelihoods), model.projection)
        self.feature_names_in_ = np.array(columns, dtype=object)
        self.n_features_in_ = len(columns)
        self.guarantee_ = guarantee

    def _fit_feature(self, feature: Feature, column: pd.Series[Any], classes: NDArray[np.int64], k: int) -> Likelihood:
        if feature.moments is not None:
            return self._fit_gaussian(feature.moments, frames.clipped(feature.moments, column), classes, k)
        values = frames.feature_indices(feature, column)
        usable = values >= 0
        cells = values[usable] * k + classes[usable]
        table = np.bincount(cells, minlength=feature.size * k).astype(np.float64).reshape(feature.size, k)
        return discrete_likelihood(feature, table + self.smoothing)

    def _fit_gaussian(
        self, feature: NumericFeature, values: Array, classes: NDArray[np.int64], k: int
    ) -> GaussianLikelihood:
        """Maximum-likelihood moments; a class without values gets those of all classes together."""
        usable = ~np.isnan(values)
        everything = values[usable] if usable.any() else np.array([(float(feature.low) + float(feature.high)) / 2])
        least = float(self.variance_floor) * (float(feature.high) - float(feature.low)) ** 2
        members = [values[usable & (classes == c)] for c in range(k)]
        members = [m if len(m) else everything for m in members]
        return GaussianLikelihood(
            feature,
            mean=tuple(float(m.mean()) for m in members),
            variance=tuple(max(float(m.var()), least) for m in members),
        )


def discrete_likelihood(feature: Feature, table: Array) -> DiscreteLikelihood:
    """P(value | class) from non-negative weights of shape (values, k); a class without weight gets a uniform column."""
    totals = table.sum(axis=0)
    shares = np.where(totals > 0, table / np.where(totals > 0, totals, 1.0), 1 / len(table))
    return DiscreteLikelihood(feature, tuple(tuple(row) for row in shares.tolist()))


def _log_likelihood(likelihood: Likelihood, column: pd.Series[Any]) -> Array:
    """ln P(value | class) per row and class; zeros where the row has no usable value."""
    if isinstance(likelihood, DiscreteLikelihood):
        indices = frames.feature_indices(likelihood.feature, column)
        rows = np.vstack([np.log(np.array(likelihood.table)), np.zeros(len(likelihood.table[0]))])
        return rows[indices]
    values = frames.clipped(likelihood.feature, column)[:, None]
    mean, variance = np.array(likelihood.mean), np.array(likelihood.variance)
    density = -0.5 * np.log(2 * np.pi * variance) - (values - mean) ** 2 / (2 * variance)
    return np.where(np.isnan(values), 0.0, density)


def inputs_of(features: Sequence[Feature], projection: Projection | None) -> tuple[Feature, ...]:
    """The features that a table must hold: inputs of a projection stand in for its outputs."""
    if projection is None:
        return tuple(features)
    outputs = projection.output_positions
    return (*(feature for feature in features if feature.name not in outputs), *projection.inputs)


def input_names(features: Sequence[Feature], projection: Projection | None) -> tuple[str, ...]:
    """The columns that a table must have."""
    return tuple(feature.name for feature in inputs_of(features, projection))


def framed(X: Any, names: Sequence[str] | None = None) -> pd.DataFrame:
    """The table as a DataFrame; an array's columns get the features' names in their order."""
    X = frames.as_pandas(X)
    if isinstance(X, pd.DataFrame):
        return X.rename(columns=str).reset_index(drop=True)
    # Of lists, numpy would make an array in which one text makes texts of all numbers.
    values = np.asarray(X) if hasattr(X, "__array__") else np.array(X, dtype=object)
    if values.ndim != 2:
        raise ValueError(f"Expected 2D array, got {values.ndim}D array instead: reshape X to rows by features")
    columns = [f"x{i}" for i in range(values.shape[1])] if names is None else list(names)
    if values.shape[1] != len(columns):
        raise ValueError(f"X has {values.shape[1]} columns; the schema has {len(columns)} features")
    return pd.DataFrame(values, columns=columns)


def read_schema(draft: Mapping[str, Any]) -> Schema:
    """Label, features and projection of a draft, outputs in place of inputs. Raises DraftError, naming the field."""
    fields = Fields(draft, "", DraftError)
    label = read_label(fields.raw("label"), DraftError)
    if not label:
        raise fields.error("label", 'is missing; a model needs one, such as {"name": "ill", "classes": ["yes", "no"]}')
    features = read_features(fields.sequence("features", least=1, most=MOST_FEATURES), label, DraftError)
    projection = read_projection(fields.raw("projection"), features, label, DraftError)
    return label, asked_features(features, projection), projection


def _schema_from_table(frame: pd.DataFrame, labels: pd.Series[Any]) -> Schema:
    return Label("class", tuple(sorted(frames.texts_of(labels)))), frames.features_of(frame), None
