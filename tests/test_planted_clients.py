"""The planted clients do what is said of them: no leak is a dud, no sound client leaks."""

from __future__ import annotations

import math

import pytest
from leaking_clients import LEAKING
from planted.witness import BLUE, RED, RED_NO, Exact, draft

from protocols import Campaign

CAMPAIGNS = {
    "one, de and laplace": draft(shapes=True, sizes=True, label=1),
    "one, ss and onebit": draft(discrete="ss", continuous="onebit", sizes=True),
    "all, oue and sign": draft(discrete="oue", continuous="sign", shapes=True, sizes=True, label=1, answers="all"),
    "all, she and onebit": draft(discrete="she", continuous="onebit", sizes=True, answers="all", epsilon=3.0),
}
PEOPLE = [RED, BLUE, RED_NO, ({}, "no"), ({"colour": "mauve", "size": 1e9}, "yes"), RED]


@pytest.fixture(params=CAMPAIGNS)
def campaign(request: pytest.FixtureRequest) -> Campaign:
    return Campaign.compile(CAMPAIGNS[request.param])


@pytest.mark.parametrize("name", LEAKING)
def test_a_leaking_client_answers_for_everybody_and_again_after_a_restart(name: str, campaign: Campaign) -> None:
    client = LEAKING[name].make()
    for sent in (client(campaign.document.decode(), PEOPLE), client.restart()):
        assert len(sent) == len(PEOPLE)
        assert any(sent)
        assert all(type(upload) is bytes and upload for uploads in sent for upload in uploads)


@pytest.mark.parametrize("name", LEAKING)
def test_an_attacker_who_knows_the_trick_sees_more_than_epsilon_allows(name: str) -> None:
    """Sampled: wrong with probability below 2e-7 for each client, with a fixed seed."""
    leak = LEAKING[name]
    epsilon = leak.witness.draft["privacy"]["epsilon"]
    log_odds = leak.witness.log_odds(leak.make, seed=7)
    assert log_odds > epsilon
    assert leak.epsilon > epsilon
    if isinstance(leak.witness, Exact):
        assert log_odds == pytest.approx(leak.epsilon, rel=1e-3)
        assert leak.witness.exclusive(leak.make) == pytest.approx(leak.delta, rel=0.05)
    else:
        assert log_odds <= leak.epsilon


@pytest.mark.parametrize("name", LEAKING)
def test_a_leaking_client_says_what_leaks_to_whom_and_how_much(name: str) -> None:
    leak = LEAKING[name]
    text = " ".join((leak.make.__doc__ or "").split())
    assert "Leaks" in text
    assert " to " in text
    assert (leak.epsilon == math.inf) == (leak.delta > 0)
