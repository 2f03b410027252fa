"""Devices that answer one campaign of a study."""

from __future__ import annotations

import json


class Studies:
    """What the devices of a storage have answered."""

    def __init__(self) -> None:
        self._first: dict[tuple[object, str, object], str] = {}

    def refuses(self, document: str, storage: object, device: object) -> bool:
        """Return whether the device has answered another campaign of the document's study."""
        study = json.loads(document).get("study")
        return study is not None and self._first.setdefault((storage, study, device), document) != document
