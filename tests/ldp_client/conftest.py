"""A campaign, a fake server, and devices that take part."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

import ldp_client.answering
from ldp_client import Device, DeviceCampaign, MemoryStorage, Policy
from ldp_client.testing import FakeClock, FakeServer
from protocols import Campaign

DRAFT: dict[str, Any] = {
    "version": 1,
    "title": "Will a customer miss a payment?",
    "purpose": "credit-risk model 3",
    "label": {"name": "missed_payment", "classes": ["yes", "no"]},
    "features": [
        {"name": "age", "kind": "categorical", "missing": False, "values": ["young", "medium", "old"]},
        {"name": "income", "kind": "continuous", "missing": False, "low": 0, "high": 200000, "bins": 8},
        {"name": "hours", "kind": "continuous", "missing": False, "low": 0, "high": 100},
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
    real = ldp_client.answering.perturb

    def counted(*arguments: Any, **options: Any) -> Any:
        made.append(arguments[2])
        return real(*arguments, **options)

    monkeypatch.setattr(ldp_client.answering, "perturb", counted)
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


Join = Callable[..., tuple[Device, DeviceCampaign]]


@pytest.fixture
def join(server: FakeServer, campaign: Campaign, clock: FakeClock) -> Join:
    """A device and its part in a campaign, granted unless told otherwise, on a memory storage of its own."""

    def make(
        *,
        of: Campaign = campaign,
        device: Device | None = None,
        granted: bool = True,
        url: str | None = None,
        max_epsilon: Any = 4,
        limits: dict[str, Any] | None = None,
        **options: Any,
    ) -> tuple[Device, DeviceCampaign]:
        if device is None:
            options = {"storage": MemoryStorage(), "clock": clock, "max_total_epsilon": 8, **options}
            device = Device(options.pop("storage"), policy=replace(Policy(), **(limits or {})), **options)
        part = device.campaign(server.url if url is None else url, of.id, max_epsilon=max_epsilon)
        if granted:
            part.load(of.document)
            part.grant()
        return device, part

    return make
