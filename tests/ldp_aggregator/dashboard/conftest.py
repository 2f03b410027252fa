"""A server in this process, a browser's manners without a browser, and a campaign that devices answered."""

import re
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

import aiohttp
import drafts
import pytest
from exact_coins import SeededCoins

from ldp_aggregator.dashboard import latest
from ldp_aggregator.server.process import running
from ldp_aggregator.server.sockets.listener import Listeners
from ldp_aggregator.service.rights import make_token
from ldp_aggregator.service.settings import Settings
from ldp_aggregator.store import SCOPES, SqliteStore, Submission
from ldp_aggregator.store.contract import utc_now
from ldp_client import perturb
from ldp_protocols import Campaign, decode_upload, encode_upload
from ldp_protocols.wire import MEDIA_TYPE


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Pages wait for the newest numbers, however busy this machine is."""
    monkeypatch.setattr(latest, "PATIENCE", 60.0)


FORM_TOKEN = re.compile(r'name="form_token" value="([0-9a-f]{64})"')
DRAFT = drafts.draft(
    drafts.text("age", "young", "medium", "old", missing=True),
    drafts.number("income", high=200_000, bins=4, missing=True),
    drafts.number("hours", high=100, missing=True),
    title="Will a customer miss a payment?",
    purpose="credit-risk model 3",
    label={"name": "missed_payment", "classes": ["yes", "no"]},
    privacy={"epsilon": 2.0},
)


@dataclass
class Dashboard:
    """Where it listens, the store behind it, one token of every scope, and a session that is signed in."""

    public: str
    admin: str
    operations: str
    store: SqliteStore
    tokens: dict[str, str]
    session: aiohttp.ClientSession

    async def get(self, path, **more):
        async with self.session.get(self.admin + path, allow_redirects=False, **more) as answer:
            return answer.status, await answer.text()

    async def send(self, path, fields, **more):
        """Status, text and Location of a form as this session's pages send it."""
        async with self.session.get(self.admin + "/tokens") as answer:
            token = FORM_TOKEN.search(await answer.text())
        given = {"form_token": token.group(1) if token else "", **fields}
        async with self.session.post(self.admin + path, data=given, allow_redirects=False, **more) as answer:
            return answer.status, await answer.text(), answer.headers.get("Location", "")

    async def publish(self, people=0, **changes):
        """A campaign, and so many devices that answered it."""
        campaign = Campaign.compile(DRAFT | changes)
        await self.store.create_campaign(campaign)
        await self.answer(campaign, people)
        return campaign

    async def page(self, campaign, query=""):
        """An operator's page of a campaign."""
        status, text = await self.get(f"/campaigns/{campaign.id}{query}")
        assert status == 200, text
        return text

    async def act(self, campaign, act, **fields):
        """Status and text of a form on a campaign's page."""
        return (await self.send(f"/campaigns/{campaign.id}/{act}", fields))[:2]

    async def people_page(self, campaign):
        async with self.session.get(f"{self.public}/c/{campaign.id}") as answer:
            assert answer.status == 200
            return await answer.text()

    async def sign_in(self, session, token, **more):
        """The answer to a token in the form of the entrance."""
        form = {"token": token, **more}
        async with session.post(f"{self.admin}/login", data=form, allow_redirects=False) as answer:
            return answer, await answer.text()

    async def upload(self, campaign, body, **headers):
        """The status of an upload over HTTP."""
        url = f"{self.public}/v1/campaigns/{campaign.id}/reports"
        async with self.session.post(url, data=body, headers={"Content-Type": MEDIA_TYPE} | headers) as answer:
            return answer.status

    async def answer(self, campaign, people):
        """The same answers in every run."""
        coins = SeededCoins(7)
        ages = ("young", "medium", "old")
        for person in range(people):
            record = {"age": ages[person % 3], "income": person * 997 % 200_000, "hours": person % 100}
            label = campaign.label.names[person % len(campaign.label.names)]
            reports = perturb(campaign, record, label, coins=coins)
            upload = decode_upload(encode_upload(reports, campaign), campaign)
            await self.store.count([Submission(campaign, upload)])


@asynccontextmanager
async def opened(tmp_path, **changes):
    store = SqliteStore(tmp_path / "store.sqlite3")
    tokens = {}
    for scope in SCOPES:
        tokens[scope], stored = make_token(f"a {scope}", scope, utc_now())
        await store.add_token(stored)
    settings = Settings(data=tmp_path, listen="127.0.0.1:0", listen_admin="0", listen_operations="0", **changes)
    listeners = Listeners.bind(settings)
    addresses = listeners.addresses(settings)
    jar = aiohttp.CookieJar(unsafe=True)
    try:
        async with running(settings, listeners, store=store), aiohttp.ClientSession(cookie_jar=jar) as session:
            found = Dashboard(addresses.public, addresses.admin, addresses.operations, store, tokens, session)
            assert (await found.sign_in(session, tokens["admin"]))[0].status == 303
            yield found
    finally:
        await store.close()


@pytest.fixture
async def dashboard(tmp_path):
    async with opened(tmp_path) as found:
        yield found


@pytest.fixture
def dashboards(tmp_path):
    """Servers with other settings, each with a store of its own."""
    return lambda **changes: opened(Path(mkdtemp(dir=tmp_path)), **changes)


@pytest.fixture
def draft():
    return DRAFT
