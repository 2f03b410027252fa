"""A crowd by its parties, each a process: what people answer comes through all of them, nothing before the last."""

from dataclasses import replace

import pytest

from ldp_client import TransportError
from ldp_simulations.benchmarks import demonstration_source
from ldp_simulations.devices import Network
from ldp_simulations.experiment import Plan, run
from ldp_simulations.parties import _found, running_parties

PEOPLE = 100


@pytest.mark.long
def test_a_crowd_answers_through_issuer_relay_and_gateway_and_one_fewer_is_nothing(monkeypatch):
    monkeypatch.setattr("ldp_simulations.parties._SECONDS", 30.0)
    source = demonstration_source()
    another = replace(source, draft={**source.draft, "title": "Another"})
    with running_parties(PEOPLE, 1.0) as parties:
        result = run(parties, source, Plan(PEOPLE, seed=1, clients=3), Network())
        campaign = result.campaign
        assert (campaign.privacy.crowd.devices, result.delivery.accepted) == (PEOPLE, PEOPLE)
        assert campaign.privacy.epsilon <= 4
        assert len(parties.first_upload[0]) == campaign.upload_bytes
        monkeypatch.setattr("ldp_simulations.parties._SECONDS", 1.0)
        with pytest.raises(TransportError, match="0 of 100 answers"):
            run(parties, another, Plan(PEOPLE - 1, seed=1, clients=3), Network())


def test_a_party_that_says_nothing_is_told():
    with pytest.raises(TransportError, match="a party did not start: it said nothing"):
        _found("relaying on (.*)", "")
