"""Campaigns of complete features, and what is reported to them about tables that are known."""

import numpy as np
from drafts import draft, text

from ldp_aggregator.estimation.estimators import estimate_question
from ldp_aggregator.mechanisms import analysis_of
from protocols import Campaign


def complete_campaign(values=(2, 3), classes=2, epsilon=1.0, discrete="ss"):
    """Features ``x0``, ``x1``, ... of so many values each, none of which is ever missing."""
    features = [text(f"x{n}", *(f"v{i}" for i in range(size))) for n, size in enumerate(values)]
    label = {"name": "y", "classes": [f"c{i}" for i in range(classes)]}
    return Campaign.compile(draft(*features, label=label, privacy={"epsilon": epsilon, "discrete": discrete}))


def reported(campaign, joints, n, rng):
    """Estimates of all questions, n reports each; ``joints`` are the cells of every feature, the label's first."""
    found = []
    for question, joint in zip(campaign.questions, joints, strict=True):
        counts = analysis_of(question.mechanism).tally(rng.multinomial(n, joint), rng)
        found.append(estimate_question(question, n, np.asarray(counts), len(campaign.label.classes), "none"))
    return found
