"""A campaign, a fake server, and clients of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import ldp_client.client
import pytest

from ldp_client import Client, MemoryStorage, Policy
from ldp_client.testing import FakeClock, FakeServer
from protocols import Campaign

DRAFT: dict[str, Any] = {
    "version": 1,
    "title": "Will a customer miss a payment?",
    "purpose": "credit-risk model 3",
    "label": {"name": "missed_payment", "classes": ["yes", "no"]},
    "features": [
        {"name": "age", "kind": "categorical", "values": ["young", "medium", "old"]},
        {"name": "income", "kind": "continuous", "low": 0, "high": 200000, "bins": 8},
        {"name": "hours", "kind": "continuous", "low": 0, "high": 100},
    ],
    "privacy": {"epsilon": 1.0},
}

MODEL: dict[str, Any] = {
    "version": 1,
    "kind": "naive-bayes",
    "label": "missed_payment",
    "classes": ["yes", "no"],
    "prior": [0.4, 0.6],
    "features": [
        {"name": "age", "kind": "categorical", "values": ["young", "old"], "likelihood": [[0.5, 0.2], [0.5, 0.8]]}
    ],
    "projection": None,
    "training": {},
}


@pytest.fixture
def draft() -> dict[str, Any]:
    return json.loads(json.dumps(DRAFT))


@pytest.fixture
def model() -> str:
    return json.dumps(MODEL)


@pytest.fixture
def perturbations(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """One entry for every perturbation."""
    made: list[object] = []
    real = ldp_client.client.perturb

    def counted(*arguments: Any, **options: Any) -> Any:
        made.append(arguments[2])
        return real(*arguments, **options)

    monkeypatch.setattr(ldp_client.client, "perturb", counted)
    return made


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as fake:
        yield fake


@pytest.fixture
def campaign(server: FakeServer, draft: dict[str, Any]) -> Campaign:
    return server.publish(draft)


@pytest.fixture
def all_campaign(server: FakeServer, draft: dict[str, Any]) -> Campaign:
    """Every device answers one question of each of four groups."""
    return server.publish({**draft, "privacy": {"epsilon": 4.0, "answers": "all"}})


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def make_client(server: FakeServer, campaign: Campaign, clock: FakeClock) -> Callable[..., Client]:
    """A client that has been granted, on a memory storage of its own unless told otherwise."""

    def make(*, granted: bool = True, limits: dict[str, Any] | None = None, **options: Any) -> Client:
        options.setdefault("storage", MemoryStorage())
        options.setdefault("clock", clock)
        client = Client(
            options.pop("url", server.url),
            options.pop("campaign_id", campaign.id),
            max_epsilon=options.pop("max_epsilon", 4),
            max_total_epsilon=options.pop("max_total_epsilon", 8),
            policy=replace(Policy(), **(limits or {})),
            **options,
        )
        if granted:
            client.grant()
        return client

    return make
