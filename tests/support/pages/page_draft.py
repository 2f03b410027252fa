"""The draft that the pages on tables and values speak of. A module of its own: devices' tests need nothing else."""

TABLE_DRAFT = {
    "version": 1,
    "title": "t",
    "label": {"name": "paid", "classes": ["yes", "no"]},
    "features": [
        {"name": "age", "kind": "continuous", "low": 18, "high": 90},
        {"name": "job", "kind": "categorical", "values": ["none", "part", "full"]},
    ],
    "privacy": {"epsilon": 1.0},
}
