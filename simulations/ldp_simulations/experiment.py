"""One experiment over real HTTP: publish, let devices answer, train, and compare on people who were held out; and the
operator's side of it: a running aggregator, or one started for as long as the experiment lasts.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from tqdm import tqdm

from ldp_aggregator import NaiveBayes, Tally, train
from ldp_aggregator.service import rights
from ldp_aggregator.store import open_store
from ldp_aggregator.store.contract import utc_now
from ldp_aggregator.trainers.reading import TableError
from ldp_client import TransportError
from ldp_protocols import Campaign, LdpError
from ldp_protocols.wire import MEDIA_TYPE
from ldp_simulations.columns import Columns
from ldp_simulations.devices import HONEST, Behaviour, Delivery, Network, run_devices
from ldp_simulations.fidelities import relayed_upload
from ldp_simulations.studies.shares import held_against
from ldp_simulations.studies.trials import Accuracies, accuracy, majority, non_private
from ldp_simulations.tables import Source, Table

_PROGRAM: Final = (sys.executable, "-m", "ldp_aggregator")
_READY: Final = re.compile(r"ready: public (\S+) admin (\S+)")
_TIMEOUT: Final = 60.0


@dataclass(frozen=True)
class Aggregator:
    """A running aggregator as its operator sees it: addresses, and an admin token; a relay's for an experiment's own.
    ``data`` is another's store folder, where that is known.
    """

    url: str
    admin_url: str
    token: str
    relay_token: str | None = None
    data: Path | None = None

    @property
    def relay_url(self) -> str | None:
        """The address for sealed uploads, None without a relay."""
        return None

    def sign(self, person: str, request: bytes) -> bytes:
        """Sign a token for a person. Raises LdpError where the campaign has no issuer."""
        raise LdpError("no-issuer", "this aggregator has none")

    def publish(self, draft: Mapping[str, Any]) -> Campaign:
        """Publish a draft and read back what devices will read."""
        created = json.loads(self._request("POST", f"{self.admin_url}/admin/v1/campaigns", json.dumps(draft).encode()))
        return Campaign.parse(self._request("GET", f"{self.url}/v1/campaigns/{created['id']}"), created["id"])

    def relay(self, campaign: Campaign, upload: bytes) -> int:
        """Upload as a relay does, with its token; returns how many reports were refused."""
        url = f"{self.url}/v1/campaigns/{campaign.id}/reports"
        answer = json.loads(self._request("POST", url, upload, token=self.relay_token, media_type=MEDIA_TYPE))
        return len(answer["rejected"])

    def learned(self, campaign: Campaign) -> NaiveBayes | None:
        """The published model of an experiment's aggregator; of another, learned from its store, None if unreadable."""
        if self.relay_token is not None:
            return self.train(campaign)
        return None if self.data is None else train(campaign, asyncio.run(_tally(self.data, campaign)))

    def train(self, campaign: Campaign) -> NaiveBayes:
        """Train on what was counted, publish the model however good it is, and read it back as a device does.

        Training takes as long as it takes; a server that dies closes the connection.
        """
        url = f"{self.admin_url}/admin/v1/campaigns/{campaign.id}/train?anyway=true"
        self._request("POST", url, b"{}", timeout=None)
        return NaiveBayes.from_json(self._request("GET", f"{self.url}/v1/campaigns/{campaign.id}/model"))

    def estimated(self, campaign: Campaign) -> dict[str, Any] | None:
        """The estimates of a campaign now, as JSON; None of an aggregator in whose store no token can be made."""
        if self.data is None:
            return None
        url, token = f"{self.url}/v1/campaigns/{campaign.id}/estimates", make_token(self.data, "collector")
        estimates: dict[str, Any] = json.loads(self._request("GET", url, token=token))
        return estimates

    def _request(
        self,
        method: str,
        url: str,
        body: bytes | None = None,
        *,
        token: str | None = None,
        media_type: str = "application/json",
        timeout: float | None = _TIMEOUT,
    ) -> bytes:
        request = urllib.request.Request(url, body, method=method)  # noqa: S310 - http and https, from the operator
        request.add_header("Authorization", f"Bearer {token or self.token}")
        if body is not None:
            request.add_header("Content-Type", media_type)
        return answer_to(request, timeout)


async def _tally(data: Path, campaign: Campaign) -> Tally:
    store = await open_store(data, read_only=True)
    try:
        return await store.tally(campaign.id)
    finally:
        await store.close()


def make_token(data: Path, scope: str) -> str:
    """Make a token of that scope in the store in the folder ``data``, as ``ldp-aggregator token create`` does."""
    text, token = rights.make_token(f"{scope} of a simulation, {secrets.token_hex(4)}", scope, utc_now())

    async def add() -> None:
        store = await open_store(data)
        try:
            async with rights.recorded(store, rights.local_actor(), "create token", detail=token.name):
                await store.add_token(token)
        finally:
            await store.close()

    asyncio.run(add())
    return text


@contextmanager
def temporary_aggregator(origins: Sequence[str] = ()) -> Iterator[Aggregator]:
    """An aggregator on the embedded store in a temporary folder; ``origins`` of pages may answer its campaigns."""
    with tempfile.TemporaryDirectory(prefix="ldp-bayes-") as folder:
        data = Path(folder) / "data"
        with serving(data, origins) as (url, admin_url):
            yield Aggregator(url, admin_url, make_token(data, "admin"), make_token(data, "relay"), data)


@contextmanager
def serving(data: Path, origins: Sequence[str] = (), *, gateway_key: Path | None = None) -> Iterator[tuple[str, str]]:
    """``ldp-aggregator serve`` in a process on free ports, for the block: its public and its admin address."""
    named = {} if gateway_key is None else {"LDP_AGGREGATOR_GATEWAY_KEY": str(gateway_key)}
    listeners = ("--listen", "127.0.0.1:0", "--listen-admin", "0", "--listen-operations", "0")
    allowed = [word for origin in origins for word in ("--allow-origin", origin)]
    command = [*_PROGRAM, "serve", "--data", str(data), *listeners, *allowed]
    with (
        # Its log is for operators; here it is read only where the start fails.
        tempfile.TemporaryFile("w+", encoding="utf-8") as log,
        subprocess.Popen(  # noqa: S603 - as above
            command, stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, **named}
        ) as process,
    ):
        try:
            ready = _READY.search(process.stdout.readline() if process.stdout else "")
            if ready is None:
                process.wait(_TIMEOUT)
                log.seek(0)
                said = log.read().strip().splitlines()
                raise TransportError(
                    "not-started", f"the aggregator did not start: {said[-1] if said else 'it said nothing'}"
                )
            yield ready[1], ready[2]
        finally:
            stop(process)


def stop(process: subprocess.Popen[str]) -> None:
    """SIGTERM lets a program commit and leave; one that does not leave is killed."""
    process.terminate()
    try:
        process.wait(_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()


def answer_to(request: urllib.request.Request, timeout: float | None = _TIMEOUT) -> bytes:
    """The body of a success. Raises TransportError for everything else."""
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:  # noqa: S310 - http and https, from the operator
            content: bytes = answer.read()
    except urllib.error.HTTPError as error:
        reason = f"{request.full_url} answered {error.code}: {_problem(error.read())}"
        raise TransportError(f"http-{error.code}", reason) from None
    except (OSError, ValueError) as error:
        reason = f"{request.full_url} cannot be reached: {getattr(error, 'reason', error)}"
        raise TransportError("unreachable", reason) from None
    return content


def _problem(body: bytes) -> str:
    """The detail of a problem document, or the start of whatever came instead."""
    try:
        document = json.loads(body)
        return str(document.get("detail") or document.get("title"))
    except (ValueError, AttributeError):
        return body[:200].decode(errors="replace").replace("\n", " ") or "no explanation"


TRAIN_FRACTION: Final = 0.8
"""Share of a table's people who answer; the others are held out."""

MARKS: Final = (100, 300, 1_000, 3_000, 10_000, 30_000)
"""Devices after which a watched experiment trains and looks how good the model is."""


@dataclass(frozen=True)
class Plan:
    """Devices (None: one for each person to learn from), of which ``clients`` (None: all) run the real client.
    The answers of the others are drawn at once, by the same laws, and come in as a relay's uploads.
    """

    devices: int | None = None
    seed: int | None = None
    behaviour: Behaviour = HONEST
    clients: int | None = None


@dataclass(frozen=True)
class Result:
    """The result; ``people`` is how many different people the devices were drawn from."""

    campaign: Campaign
    model: NaiveBayes | None
    delivery: Delivery
    accuracies: Accuracies | None
    people: int
    clients: int
    held_out: Table
    majority_class: str
    statistics: Sequence[Mapping[str, Any]] | None = None
    """Without a label, the errors of what was estimated, as :func:`ldp_simulations.studies.shares.held_against` gives
    them; None where nobody could look at it.
    """
    estimates: Mapping[str, Any] | None = None

    @property
    def resampled(self) -> bool:
        """Tell whether there are more devices than people, so that the same person answers on several devices."""
        return self.delivery.devices > self.people

    def predicted_shares(self) -> dict[str, float]:
        """Class to the share of the people held out whom the model puts there; none without a model."""
        if self.model is None:
            return {}
        predicted = self.model.predict(self.held_out.frame)
        return {name: float(np.mean(predicted == name)) for name in self.campaign.label.classes}

    def to_json(self) -> dict[str, Any]:
        """The figures that ``--json`` prints."""
        return {
            "campaign": self.campaign.id,
            "epsilon": self.campaign.privacy.epsilon,
            "realised_epsilon": self.campaign.realised_epsilon,
            "questions": len(self.campaign.questions),
            "answers_per_device": len(self.campaign.groups) if self.campaign.privacy.answers == "all" else 1,
            "people": self.people,
            "resampled": self.resampled,
            "clients": self.clients,
            **asdict(self.delivery),
            **(self._of_model(self.accuracies) if self.accuracies else {"statistics": self.statistics}),
        }

    def _of_model(self, accuracies: Accuracies) -> dict[str, Any]:
        return {
            "held_out": len(self.held_out),
            "accuracy": asdict(accuracies),
            "expected": None if self.model is None else self.model.model_.training["expected"],
            "predicted_shares": self.predicted_shares(),
        }


class Watcher:
    """Hears how an experiment goes on; this one does not listen."""

    marks: Sequence[int] = ()
    """Devices after which it wants to know how good the model is."""

    def published(self, aggregator: Aggregator, campaign: Campaign) -> None:
        """The campaign is open."""

    def learned(self, devices: int, right: float) -> None:
        """So many devices have answered, and the model is right for this share of the people held out."""


def run(aggregator: Aggregator, source: Source, plan: Plan, network: Network, watcher: Watcher | None = None) -> Result:
    """Run the whole experiment. Raises TransportError and TableError."""
    if len(source.people) < 2:
        raise TableError(f"{source.name}: one row is not enough; some people answer and others are held out")
    watcher = watcher or Watcher()
    rng = np.random.default_rng(plan.seed)
    training, held_out = source.people.split(TRAIN_FRACTION, rng)
    if source.draft.get("label") is None:  # Nothing is tried on anybody.
        training = source.people
    owners = training.draw(plan.devices or len(training), rng)
    clients = len(owners) if plan.clients is None else min(plan.clients, len(owners))
    campaign = aggregator.publish(source.draft)
    watcher.published(aggregator, campaign)
    columns = Columns.of(campaign, owners.frame, owners.labels)
    delivery, start = Delivery(), 0
    with tqdm(total=clients, desc="devices", unit=" devices", disable=None, file=sys.stderr, leave=False) as bar:
        for end in sorted({clients, len(owners), *(mark for mark in watcher.marks if mark < len(owners))}):
            rows = np.arange(start, end)
            if start < clients:
                delivery += run_devices(
                    aggregator,
                    campaign,
                    owners.take(rows),
                    network,
                    seed=plan.seed,
                    first=start,
                    behaviour=plan.behaviour,
                    on_device=bar.update,
                )
            else:
                upload = relayed_upload(columns, rows, rng)
                refused = aggregator.relay(campaign, upload)
                accepted = len(rows) * len(campaign.pools) - refused
                delivery += Delivery(len(rows), accepted=accepted, bytes_per_report=len(upload) / max(1, accepted))
            start = end
            if campaign.label and end in watcher.marks and end < len(owners):
                watcher.learned(end, accuracy(aggregator.train(campaign), held_out))
    if not campaign.label:
        estimates = aggregator.estimated(campaign)
        found = held_against(campaign, estimates, source.people, len(owners)) if estimates else None
        return Result(
            campaign, None, delivery, None, len(training), clients, held_out, "", statistics=found, estimates=estimates
        )
    model = aggregator.learned(campaign)
    scores = Accuracies(
        majority=majority(owners, held_out),
        private=None if model is None else accuracy(model, held_out),
        non_private=accuracy(non_private(campaign, owners), held_out),
    )
    if scores.private is not None:
        watcher.learned(len(owners), scores.private)
    return Result(
        campaign=campaign,
        model=model,
        delivery=delivery,
        accuracies=scores,
        people=len(training),
        clients=clients,
        held_out=held_out,
        majority_class=str(owners.labels.mode().iloc[0]),
    )
