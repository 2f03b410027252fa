"""diffprivlib's GaussianNB on given splits, as a program of its own: it runs in an environment that has diffprivlib.

``PYTHON trainers_peer.py FOLDER``: every ``*.npz`` holds one split (train, train_classes, test, test_classes, low,
high) and ``epsilons.json`` the list; prints ``{"split.npz": [accuracy per epsilon]}``. Nothing of this project is
imported.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np
from diffprivlib.models import GaussianNB  # type: ignore[import-not-found]


def main(folder: Path) -> None:
    epsilons = json.loads((folder / "epsilons.json").read_text())
    found = {}
    for path in sorted(folder.glob("*.npz")):
        split = np.load(path)
        train = np.clip(split["train"], split["low"], split["high"])
        test = np.clip(split["test"], split["low"], split["high"])
        accuracies = []
        for epsilon in epsilons:
            model = GaussianNB(epsilon=epsilon, bounds=(split["low"], split["high"]))
            model.fit(train, split["train_classes"])
            accuracies.append(float((model.predict(test) == split["test_classes"]).mean()))
        found[path.name] = accuracies
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]))
