"""The number of questions to a database for one group of uploads: every statement is a way there and back."""

from __future__ import annotations

from collections import Counter
from functools import partial

import asyncpg
import pytest
from postgres import empty

from ldp_aggregator.store import open_store
from ldp_aggregator.store.postgres import store as postgres_store


@pytest.fixture
def asked(monkeypatch):
    """Count the statements each database has had since it was cleared, those that begin and end a transaction too."""
    counts = Counter()

    async def watch(connection):
        connection.add_query_logger(lambda record: counts.update([record.conn_params.database]))

    monkeypatch.setattr(asyncpg, "create_pool", partial(asyncpg.create_pool, init=watch))
    return counts


@pytest.mark.parametrize(("reports", "ways"), [(1, 1), (postgres_store.SMALL, 1), (postgres_store.SMALL * 8, 4)])
async def test_a_group_of_new_reports_is_one_way_to_the_database_and_a_large_one_four(
    postgres, tmp_path, asked, make_campaign, make_submission, make_report, reports, ways
):
    await empty(postgres.address)
    store = await open_store(tmp_path, postgres.address)
    campaign = make_campaign(4096)
    await store.create_campaign(campaign)
    for first in (0, reports):  # With its first arrays a connection learns their types.
        asked.clear()
        group = [[make_report(campaign, n)] for n in range(first, first + reports)]
        group = group if ways == 1 else [[report for [report] in group]]
        outcomes = await store.count([make_submission(campaign, some) for some in group])
        assert sum(outcome.counted for outcome in outcomes) == reports
    assert list(asked.values()) == [ways]
    await store.close()


async def test_a_group_of_many_campaigns_is_one_way_too(
    postgres, tmp_path, asked, make_campaign, make_submission, make_report
):
    await empty(postgres.address)
    store = await open_store(tmp_path, postgres.address)
    campaigns = [make_campaign(title=f"Campaign {number}") for number in range(8)]
    for campaign in campaigns:
        await store.create_campaign(campaign)
    for first in (0, 4):
        asked.clear()
        numbers = range(first, first + 4)
        group = [make_submission(campaign, [make_report(campaign, n)]) for campaign in campaigns for n in numbers]
        assert sum(outcome.counted for outcome in await store.count(group)) == 32
    assert list(asked.values()) == [1]
    await store.close()
