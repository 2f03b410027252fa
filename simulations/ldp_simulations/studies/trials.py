"""Many seeded trials of a campaign on one table: how good would the model be, how sure is that, at which total loss?

A trial splits the people, lets the training people's devices answer under every setting, and scores each model on the
people held out. Settings within a trial share the split, so that their differences are not those of the splits. Trials
run over the cores of this machine, and are kept on disk so that an interrupted experiment goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.special import logsumexp
from sklearn.metrics import roc_auc_score
from tqdm import tqdm

from ldp_aggregator import NaiveBayes, Tally, train
from ldp_aggregator.estimation.simplex import POSTERIOR
from ldp_aggregator.evaluation.figures import evaluate
from ldp_aggregator.evaluation.rounds import evaluated_model, evaluation_draft
from ldp_aggregator.learning.training import POOLED, Decoding, learn
from ldp_aggregator.trainers.reading import TableError
from ldp_protocols import Campaign
from ldp_simulations.columns import Columns
from ldp_simulations.fidelities import simulate_counts
from ldp_simulations.tables import Source, Table


@dataclass(frozen=True)
class Accuracies:
    """Shares of the held-out people that are classified rightly."""

    majority: float
    """Always saying the most frequent class of the training people."""
    private: float | None
    """The model learned from the devices' reports; None where nobody could look at it."""
    non_private: float
    """The same kind of model, learned from the same people without any privacy."""


def majority(trained_on: Table, held_out: Table) -> float:
    """Share of the people held out that always saying the most frequent class of the others classifies rightly."""
    return float((held_out.labels == trained_on.labels.mode().iloc[0]).mean())


def accuracy(model: NaiveBayes, people: Table) -> float:
    """Share of people that the model classifies rightly."""
    return float(np.mean(model.predict(people.frame) == people.labels.to_numpy(dtype=object)))


def area_of(model: NaiveBayes, people: Table, name: str) -> float:
    """Area under the ROC curve of a class: how often one of it is ranked above one of another; NaN without both."""
    of_it = people.labels.to_numpy(dtype=object) == name
    if of_it.all() or not of_it.any():
        return math.nan
    place = model.model_.classes.index(name)
    scores = model.scores(people.frame)
    return float(roc_auc_score(of_it, scores[:, place] - logsumexp(np.delete(scores, place, axis=1), axis=1)))


def learned(campaign: Campaign, tally: Tally, *, post: str = POSTERIOR, prior: str = POOLED) -> NaiveBayes:
    """The classifier of ``train`` without what it tells of itself, which takes longer than the learning."""
    return NaiveBayes.from_model(learn([(campaign, tally)], Decoding(post, prior)).model)


def non_private(campaign: Campaign, people: Table) -> NaiveBayes:
    """Naive Bayes of the campaign's schema, learned from the records themselves."""
    return NaiveBayes(schema=json.loads(campaign.document)).fit(people.frame, people.labels)


ACCURACY: Final = "accuracy"


@dataclass(frozen=True)
class Setting:
    """A setting to try. ``epsilon`` is a device's total loss, or with ``per_question`` that of each of its answers."""

    mechanism: str
    epsilon: float
    per_question: bool = False
    continuous: str = "auto"

    def campaign(self, draft: Mapping[str, Any]) -> Campaign:
        """The draft's campaign under its true total loss; ``per_question`` spends it on each group, as papers do."""
        privacy = {**draft["privacy"], "discrete": self.mechanism, "continuous": self.continuous}
        answers = "all" if self.per_question else privacy.get("answers") or "one"
        label = draft.get("label")
        alone = label is not None and label.get("weight") != 0
        groups = len(draft["features"]) + alone + len(draft.get("pairs") or ())
        total = self.epsilon * groups if self.per_question else self.epsilon
        return Campaign.compile({**draft, "privacy": {**privacy, "epsilon": total, "answers": answers}})


@dataclass(frozen=True)
class Design:
    """The design of all trials. ``devices`` None makes every training person a device."""

    devices: int | None = None
    train_fraction: float = 0.8
    post: str = POSTERIOR
    prior: str = POOLED


def run_trial(source: Source, settings: Sequence[Setting], design: Design, seed: int) -> list[dict[str, Any]]:
    """One row for every setting; the same seed gives the same rows."""
    rng = np.random.default_rng(seed)
    training, held_out = source.people.split(design.train_fraction, rng)
    campaigns = [setting.campaign(source.draft) for setting in settings]
    baseline = {
        "majority": majority(training, held_out),
        "non_private": accuracy(non_private(campaigns[0], training), held_out),
    }
    columns = Columns.of(campaigns[0], training.frame, training.labels)
    rows = []
    for setting, campaign in zip(settings, campaigns, strict=True):
        tally = simulate_counts(replace(columns, campaign=campaign), rng, design.devices)
        model = learned(campaign, tally, post=design.post, prior=design.prior)
        rows.append(
            {
                "seed": seed,
                **asdict(setting),
                "answers": campaign.privacy.answers,
                "total_epsilon": campaign.privacy.epsilon,
                "devices": design.devices or len(training),
                ACCURACY: accuracy(model, held_out),
                **baseline,
            }
        )
    return rows


def summarise(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Means and standard errors over the trials, one row for every setting, in the order they were given."""
    frame = pd.DataFrame(list(rows))
    keys = ["mechanism", "continuous", "epsilon", "per_question", "answers", "total_epsilon", "devices"]
    groups = frame.groupby(keys, sort=False)
    summary = groups[[ACCURACY, "majority", "non_private"]].mean()
    summary.insert(1, "standard_error", groups[ACCURACY].std(ddof=1) / np.sqrt(groups.size()))
    summary.insert(0, "trials", groups.size())
    return summary.reset_index()


def fingerprint(source: Source, settings: Sequence[Setting], design: Design) -> str:
    """Name the experiment that a trial belongs to: the same people, draft, settings and design."""
    return experiment_id(source.people, *describe(source, settings, design))


def describe(source: Source, settings: Sequence[Setting], design: Design) -> tuple[Any, ...]:
    """Describe what makes an experiment another than the next one on the same people, as JSON."""
    return source.draft, [asdict(setting) for setting in settings], asdict(design)


_THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

Rows = list[dict[str, Any]]
Trial = Callable[[int], Rows]

_trial: Trial


@dataclass(frozen=True)
class Journal:
    """The trials of one experiment in a file that others may share, a JSON object a line; ``path`` None keeps none."""

    path: Path | None
    experiment: str

    def finished(self) -> dict[int, Rows]:
        """The rows of this experiment's finished trials, by seed. A last line that was cut short is ignored."""
        if self.path is None or not self.path.exists():
            return {}
        try:
            lines = self.path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise TableError(f"{self.path}: not a journal of trials ({error})") from None
        found = {}
        for line in lines:
            with suppress(ValueError):
                entry = json.loads(line)
                if isinstance(entry, dict) and entry.get("experiment") == self.experiment:
                    found[entry["seed"]] = entry["rows"]
        return found

    def add(self, seed: int, rows: Rows) -> None:
        """Keep a finished trial."""
        if self.path is None:
            return
        entry = json.dumps({"experiment": self.experiment, "seed": seed, "rows": rows})
        # The line starts with its own line break: a predecessor that was cut short stays the only one lost.
        with self.path.open("a", encoding="utf-8") as file:
            file.write("\n" + entry + "\n")


def experiment_id(people: Table, *described: Any) -> str:
    """Name the experiment that a trial belongs to: the same people, the same of all that is ``described`` (as JSON)."""
    hashes = (pd.util.hash_pandas_object(part, index=False) for part in (people.frame, people.labels))
    content = b"".join(part.to_numpy().tobytes() for part in hashes)
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode() + content).hexdigest()[:16]


def run_trials(
    trial: Trial, seeds: Sequence[int], journal: Journal, *, workers: int | None = None, description: str = "trials"
) -> Rows:
    """Rows of picklable ``trial(seed)`` in the order of the seeds; those in the journal are not run again."""
    finished = journal.finished()
    done = {seed: finished[seed] for seed in seeds if seed in finished}
    missing = [seed for seed in seeds if seed not in done]
    # ``disable`` None: where standard error is no terminal.
    with tqdm(
        total=len(seeds), initial=len(done), desc=description, unit=" trials", disable=None, file=sys.stderr
    ) as bar:
        for seed, rows in _finish(trial, missing, workers):
            journal.add(seed, rows)
            done[seed] = rows
            bar.update()
    return [row for seed in seeds for row in done[seed]]


def _finish(trial: Trial, seeds: Sequence[int], workers: int | None) -> Iterator[tuple[int, Rows]]:
    workers = min(workers or os.cpu_count() or 1, len(seeds))
    if workers <= 1:
        yield from ((seed, trial(seed)) for seed in seeds)
        return
    for name in _THREADS:  # One process a core: its libraries need no threads of their own.
        os.environ.setdefault(name, "1")
    with ProcessPoolExecutor(workers, initializer=_start, initargs=(trial,)) as pool:
        running = {pool.submit(_run, seed): seed for seed in seeds}
        for future in as_completed(running):
            yield running[future], future.result()


def _start(trial: Trial) -> None:
    """The trial carries a table: it travels once to each process, not once with each seed."""
    global _trial
    _trial = trial


def _run(seed: int) -> Rows:
    return _trial(seed)


EVALUATING: Final = 0.1
"""Share of the devices that evaluate; the others are learned from."""

_STUDY: Final = "simulated"
_SURE: Final = 2.0
"""Standard errors from which on a difference is told as one."""


@dataclass(frozen=True)
class Study:
    """The number of devices in all, and which share of them evaluates."""

    devices: int
    evaluating: float = EVALUATING
    train_fraction: float = 0.8


def run_study(source: Source, study: Study, seed: int) -> list[dict[str, Any]]:
    """One row: what was published with and without the round, how accurate it was said to be, and is."""
    rng = np.random.default_rng(seed)
    training, held_out = source.people.split(study.train_fraction, rng)
    learners, others = training.split(1 - study.evaluating, rng)
    campaign = Campaign.compile({**source.draft, "study": source.draft.get("study") or _STUDY})
    evaluating = round(study.devices * study.evaluating)
    model = train(campaign, _answers(campaign, learners, study.devices - evaluating, rng)).model_
    round_ = Campaign.compile(evaluation_draft([campaign], model))
    tally = _answers(round_, others, evaluating, rng)
    claimed, published = evaluate(round_, tally).accuracy, evaluated_model(round_, tally)
    alone = learned(campaign, _answers(campaign, training, study.devices, rng))
    among_others = accuracy(published, others)
    low, high = (math.nan if end is None else end for end in (claimed.low, claimed.high))
    return [
        {
            "seed": seed,
            "moved": published.model_.prior != model.prior,
            "published": accuracy(published, held_out),
            "alone": accuracy(alone, held_out),
            "majority": majority(training, held_out),
            "told": claimed.value,
            "width": high - low if claimed.value is not None else None,
            "covered": low <= among_others <= high,
        }
    ]


def _answers(campaign: Campaign, people: Table, devices: int, rng: np.random.Generator) -> Tally:
    return simulate_counts(Columns.of(campaign, people.frame, people.labels), rng, devices)


@dataclass(frozen=True)
class Summary:
    """Means over the trials; ``gain`` is paired, with its standard error; ``moved`` and ``covered`` are shares."""

    trials: int
    published: float
    alone: float
    majority: float
    gain: float
    gain_error: float
    told: float
    width: float
    covered: float
    moved: float

    @property
    def verdict(self) -> str:
        if self.gain > _SURE * self.gain_error:
            return "the round pays: what is published is better, and how good it is is known"
        if self.gain < -_SURE * self.gain_error:
            return "the round costs accuracy: it buys the knowledge of it"
        return "the round neither pays nor costs by more than chance: it buys the knowledge of the accuracy"

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "verdict": self.verdict}


def summarise_study(rows: Iterable[Mapping[str, Any]]) -> Summary:
    """Summarise two trials or more."""
    listed = list(rows)
    gains = np.array([row["published"] - row["alone"] for row in listed])
    means = {}
    for name in ("published", "alone", "majority", "told", "width", "covered", "moved"):
        values = [row[name] for row in listed if row[name] is not None]
        means[name] = float(np.mean(values)) if values else math.nan
    error = float(gains.std(ddof=1) / math.sqrt(len(listed)))
    return Summary(len(listed), gain=float(gains.mean()), gain_error=error, **means)
