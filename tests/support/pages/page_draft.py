"""The draft that the pages on tables and values speak of. A module of its own: devices' tests need nothing else."""

from drafts import draft, number, text

_FEATURES = (number("age", 18, 90, missing=True), text("job", "none", "part", "full", missing=True))
TABLE_DRAFT = draft(*_FEATURES, label={"name": "paid", "classes": ["yes", "no"]})
