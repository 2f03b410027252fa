"""A schema with every kind of feature and a table of it."""

from weakref import WeakValueDictionary

import numpy as np
import pandas as pd
import pytest

from ldp_aggregator.trainers import randomness


@pytest.fixture(autouse=True)
def a_process_that_has_learned_nothing(monkeypatch):
    monkeypatch.setattr(randomness, "_LEARNED", WeakValueDictionary())


@pytest.fixture(scope="session")
def schema():
    return {
        "label": {"name": "class", "classes": ["a", "b", "c"]},
        "features": [
            {"name": "colour", "kind": "categorical", "values": ["red", "green", "blue"]},
            {"name": "hours", "kind": "continuous", "low": 0, "high": 100},
            {"name": "income", "kind": "continuous", "low": -10, "high": 10, "bins": 4},
            {"name": "age", "kind": "continuous", "low": 18, "high": 90},
        ],
    }


@pytest.fixture(scope="session")
def table():
    rng = np.random.default_rng(7)
    classes = rng.choice(3, size=1200, p=[0.5, 0.3, 0.2])
    frame = pd.DataFrame(
        {
            "colour": np.array(["red", "green", "blue"])[(classes + (rng.random(1200) < 0.2)) % 3],
            "hours": rng.normal(30 + 20 * classes, 10),
            "income": rng.normal(3 * classes - 3, 2),
            "age": rng.normal(40 + 5 * classes, 15),
        }
    )
    return frame, pd.Series(np.array(["a", "b", "c"])[classes])
