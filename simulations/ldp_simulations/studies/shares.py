"""Errors of a campaign without a label: what is estimated, held against what is true of the people behind it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

import numpy as np
import pandas as pd

from ldp_aggregator.estimation.estimates import estimate
from ldp_protocols import Campaign
from ldp_protocols.document.questions import INDEX
from ldp_simulations.columns import Columns
from ldp_simulations.fidelities import simulate_counts
from ldp_simulations.studies.planning import expectations, standard_errors
from ldp_simulations.studies.trials import Design, Setting
from ldp_simulations.tables import Source, Table

ERROR: Final = "error"
_TOLD: Final = [ERROR, "expected", "covered"]


def held_against(campaign: Campaign, estimates: Mapping[str, Any], people: Table, devices: int) -> list[dict[str, Any]]:
    """A row for each question of ``told`` (JSON of estimates from so many ``devices``): the root mean square over its
    cells of the ``error``, of people drawn from the table, and of the one ``expected``; and the share of intervals that
    hold the truth (``covered``). A cell is a share, or the mean of a number on the range from -1 to 1.
    """
    rows = []
    truths, errors = expectations(campaign, people), standard_errors(campaign, devices, people)
    for question, one, truth, expected in zip(campaign.questions, estimates["questions"], truths, errors, strict=True):
        cells = pd.DataFrame(one["cells"])
        covered = (cells["low"].to_numpy() <= truth.mean) & (truth.mean <= cells["high"].to_numpy())
        wrong = cells["estimate"].to_numpy(dtype=np.float64) - truth.mean
        named = {"feature": question.feature, "other": question.other, "kind": question.kind, "n": one["n"]}
        is_share = question.encoding == INDEX
        found = {ERROR: _root(wrong), "expected": _root(expected), "covered": float(covered.mean())}
        rows.append({**named, "is_share": is_share, **found})
    return rows


def _root(errors: Any) -> float:
    return math.sqrt(float(np.mean(np.square(errors))))


def run_shares(source: Source, settings: Sequence[Setting], design: Design, seed: int) -> list[dict[str, Any]]:
    """One row for every setting: errors over all questions about shares, or over all where there are none of these;
    devices belong to people drawn with replacement. The same seed gives the same rows.
    """
    rng = np.random.default_rng(seed)
    devices = design.devices or len(source.people)
    campaigns = [setting.campaign(source.draft) for setting in settings]
    columns = Columns.of(campaigns[0], source.people.frame, source.people.labels)
    rows = []
    for setting, campaign in zip(settings, campaigns, strict=True):
        tally = simulate_counts(replace(columns, campaign=campaign), rng, devices)
        found = held_against(campaign, estimate(campaign, tally).to_json(), source.people, devices)
        shares = pd.DataFrame([one for one in found if one["is_share"]] or found)
        errors = {name: _root(shares[name]) for name in (ERROR, "expected")} | {"covered": shares["covered"].mean()}
        of_setting = {
            "answers": campaign.privacy.answers,
            "total_epsilon": campaign.privacy.epsilon,
            "devices": devices,
        }
        rows.append({"seed": seed, **asdict(setting), **of_setting, **errors})
    return rows


def summarise_shares(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Root mean square errors and mean coverage over the trials, a row for every setting, in their order."""
    frame = pd.DataFrame(list(rows))
    keys = ["mechanism", "continuous", "epsilon", "per_question", "answers", "total_epsilon", "devices"]
    groups = frame.assign(**{ERROR: frame[ERROR] ** 2}).groupby(keys, sort=False)
    summary = groups[_TOLD].mean()
    summary.insert(1, "standard_error", groups[ERROR].std(ddof=1) / np.sqrt(groups.size()) / 2 / summary[ERROR] ** 0.5)
    summary[ERROR] **= 0.5
    summary.insert(0, "trials", groups.size())
    return summary.reset_index()
