"""The people of the study in ``evaluated``, as a table."""

import numpy as np
import pandas as pd


def people(count=4_000, seed=1):
    rng = np.random.default_rng(seed)
    label = rng.random(count) < 0.4
    u = np.where(rng.random(count) < 0.75, np.where(label, "3", "1"), "2")
    v = np.where(rng.random(count) < np.where(label, 0.7, 0.4), "q", "p")
    size = np.clip(rng.normal(np.where(label, 6, 4), 2), 0, 10)
    return pd.DataFrame({"u": u, "v": v, "size": size}), np.where(label, "b", "a")
