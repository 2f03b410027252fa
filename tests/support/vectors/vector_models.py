"""The models that evaluation rounds of the test vectors are about, in parts."""

COLOUR = {
    "name": "colour",
    "kind": "categorical",
    "values": ["red", "green", "0", "missing"],
    "likelihood": [[0.5, 0.1], [0.2, 0.3], [0.2, 0.2], [0.1, 0.4]],
}
SIZE = {
    "name": "größe",
    "kind": "continuous",
    "low": -1.5,
    "high": 2,
    "bins": 5,
    "likelihood": [[0.6, 0.1], [0.1, 0.2], [0.1, 0.2], [0.1, 0.2], [0.1, 0.3]],
}
HOURS = {"name": "hours", "kind": "gaussian", "low": 0, "high": 100, "mean": [20, 70], "variance": [400, 900]}
ONE_SURE = (
    {**COLOUR, "likelihood": [[0.5, 0.1], [0, 0.3], [0.25, 0.2], [0.25, 0.4]]},
    {**SIZE, "likelihood": [[0.6, 0.5], [0.1, 0.5], [0.1, 0], [0.1, 0], [0.1, 0]]},
)
"""Green is never of the first class, and large never of the second: what is both is impossible."""

THREE = (
    {**COLOUR, "likelihood": [[0.5, 0.1, 0.1], [0.2, 0.3, 0.1], [0.2, 0.2, 0.7], [0.1, 0.4, 0.1]]},
    {**HOURS, "mean": [20, 70, 45], "variance": [400, 900, 25.5]},
)


def model(label, *features):
    """A model of a label's two or three classes."""
    head = {"version": 1, "kind": "naive-bayes", "label": label["name"], "classes": label["classes"]}
    return {**head, "prior": [0.4, 0.6] if len(label["classes"]) == 2 else [0.5, 0.2, 0.3], "features": [*features]}
