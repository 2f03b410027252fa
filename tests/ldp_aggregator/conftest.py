"""Campaigns and populations that the estimator tests share; certificates of servers."""

import logging
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from discretion import OURS, Listening
from paper_table import PEOPLE

from ldp_protocols import Campaign


@pytest.fixture(autouse=True)
def discreet_log():
    """Whatever fault a test plants, nothing about clients gets into the log."""
    listening = Listening()
    logging.getLogger(OURS).addHandler(listening)
    yield listening
    logging.getLogger(OURS).removeHandler(listening)
    assert listening.found == []


@pytest.fixture
def make_campaign():
    """A campaign with one feature ``x`` (given as its draft entry) and k classes c0, c1, ...; without a label if 1."""

    def make(feature, *, classes=2, label_weight=1, **privacy):
        label = {"name": "class", "classes": [f"c{c}" for c in range(classes)], "weight": label_weight}
        return Campaign.compile(
            {
                "version": 1,
                "title": "Test",
                "label": label if classes > 1 else None,
                "features": [{"name": "x", **feature}],
                "privacy": {"epsilon": 1, **privacy},
            }
        )

    return make


@pytest.fixture(scope="session")
def paper_table():
    """Table 1 of Yilmaz, Al-Rubaie, Chang 2019: ten people, and whether they missed a payment."""
    frame = pd.DataFrame(PEOPLE, columns=["age", "income", "gender", "missed_payment"])
    return frame.drop(columns="missed_payment"), frame["missed_payment"]


@pytest.fixture(scope="session")
def paper_schema():
    return {
        "label": {"name": "missed_payment", "classes": ["yes", "no"]},
        "features": [
            {"name": "age", "kind": "categorical", "missing": False, "values": ["young", "medium", "old"]},
            {"name": "income", "kind": "categorical", "missing": False, "values": ["low", "medium", "high"]},
            {"name": "gender", "kind": "categorical", "missing": False, "values": ["male", "female"]},
        ],
    }


@pytest.fixture
def gaussian_population():
    """``make(n, k)``: n people of k classes, x normal within a class around 30 to 60, bounds [0, 100]."""

    def make(n, k):
        rng = np.random.default_rng(n + k)
        weights = np.arange(k, 0, -1) + 1.0
        classes = rng.choice(k, size=n, p=weights / weights.sum())
        x = np.clip(rng.normal(30 + 30 * classes / k, 12, size=n), 0, 100)
        return pd.DataFrame({"x": x}), np.array([f"c{c}" if k > 1 else None for c in classes], dtype=object)

    return make


@pytest.fixture
def certificate(tmp_path):
    """A function from days to a new certificate, with ``key.pem`` beside it."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")

    def make(days):
        subprocess.run(
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=server "
            f"-days {days} -keyout {tmp_path}/key.pem -out {tmp_path}/certificate.pem",
            shell=True,
            check=True,
            capture_output=True,
        )
        return tmp_path / "certificate.pem"

    return make
