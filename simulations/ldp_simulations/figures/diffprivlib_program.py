"""diffprivlib's GaussianNB on one split, as a program of its own: it runs in an environment that has diffprivlib.

``PYTHON diffprivlib_program.py SPLIT.npz``: the split holds train, train_classes, test, test_classes, low, high,
epsilons and seed. Prints the accuracies, one for each epsilon, as a JSON list. Nothing of this project is imported.
"""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
from diffprivlib.models import GaussianNB  # type: ignore[import-not-found]


def main(path: str) -> None:
    split = np.load(path)
    bounds = (split["low"], split["high"])
    train, test = (np.clip(split[name], *bounds) for name in ("train", "test"))
    accuracies = []
    for position, epsilon in enumerate(split["epsilons"].tolist()):
        seed = int(split["seed"]) * len(split["epsilons"]) + position
        model = GaussianNB(epsilon=epsilon, bounds=bounds, random_state=seed)
        model.fit(train, split["train_classes"])
        accuracies.append(float((model.predict(test) == split["test_classes"]).mean()))
    sys.stdout.write(json.dumps(accuracies))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1])
