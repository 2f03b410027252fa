"""The central guarantee beside the local one: what is published reveals less than the reports do.

Who reads estimates or a model sees a function of a tally, and a tally forgets who sent what. For that reader the
reports were shuffled, and every single one hides among the others (:mod:`ldp_aggregator.amplification`). A relay that
mixes whole batches gives who runs the server the same, with the batch for the crowd. Neither ever replaces the local
guarantee, which needs no condition.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import Any, Final

from ldp_aggregator.amplification import campaign_blankets, epsilon_bound
from ldp_aggregator.composition import can_compose, composed_bound
from ldp_aggregator.counting.tally import Arrivals, Tally, devices_counted
from ldp_aggregator.mechanisms.analysis import MOST_EXPONENT
from ldp_protocols import Campaign
from ldp_protocols.exact import float_up

LOCAL_RELATION = "local: any two records of one device"
LOCAL_PUBLIC = ("the campaign document", "which question a device answered")
NO_PRIVACY_RELATION = "none: the model is exact, nothing is protected"


@dataclass(frozen=True)
class Guarantee:
    """(epsilon, delta)-DP under ``relation``, given what is ``public``; ``epsilon`` None guarantees nothing at all."""

    epsilon: float | None
    delta: float
    relation: str
    public: tuple[str, ...]
    of_nodes: tuple[tuple[float, int], ...] = field(default=(), kw_only=True)
    """Guarantee of nodes that lose different epsilons: each, and how many lose it; ``epsilon`` is the largest."""

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value or name != "of_nodes"}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Guarantee:
        """The inverse of :meth:`to_json`."""
        of_nodes = tuple((float(epsilon), int(nodes)) for epsilon, nodes in document.get("of_nodes", ()))
        return cls(**{**document, "public": tuple(document["public"]), "of_nodes": of_nodes})

    def __str__(self) -> str:
        if self.epsilon is None:
            return f"no privacy ({self.relation})"
        least, *more = self.of_nodes or ((self.epsilon, 0),)
        loss = f"epsilon = {least[0]:g}" + (f", delta = {self.delta:g}" if self.delta else "")
        for epsilon, nodes in more:
            loss += f"; {epsilon:g} for the rows of {'one node' if nodes == 1 else f'{nodes} nodes'}"
        return f"{loss}; relation: {self.relation}; public: {', '.join(self.public)}"


DEFAULT_DELTA: Final = 1e-9
LARGEST_DELTA: Final = 0.1
LEAST_DELTA: Final = 1e-100

PUBLISHED_RELATION: Final = "published: any two records of one of the devices that answered"
RELAY_RELATION: Final = "behind the relay, {}: any two records of one of the devices of a batch"
"""Beside the number stands what it counts: a relay that admits whoever sends counts uploads, and not people."""
UPLOADS: Final = "if all uploads came from different people"
PEOPLE: Final = "which takes one upload a token; the issuer signs {} for a person"

_PUBLIC: Final = ("the campaign document", "who answered")

_CONDITIONS: Final = (
    "the reader sees what is published and not the reports, and does not know which device was asked what",
    "the devices counted here answered once, honestly, by coins that the reader does not know",
)
_ONCE: Final = "estimates or model are published once: what is published at several counts adds up"
_RELEASES: Final = (
    "all releases together, each after {:,} more devices: a device is new in one of them, and hides among those"
)
_RELEASES_OF_ALL: Final = (
    "all releases together, each after {:,} more answers to every group: an answer is new in one of them, and hides "
    "among those"
)
_TWICE: Final = "not for the devices, {:,} at most, that two merged stores had both counted: they lose as locally"
_ALL: Final = "{} composition over what one device answers: nobody may see which answers are one device's"
_RELAY: Final = (
    "the relay does not collude with who runs the server, and waits for the whole batch",
    "the relay drops order, times, addresses, tokens and lengths of what it mixes",
    "the devices counted here answered once, honestly, by coins that who runs the server does not know",
)


@dataclass(frozen=True)
class PublishedGuarantee(Guarantee):
    """(epsilon, delta)-DP of one of ``reports`` devices, of which readers know the coins of ``colluding`` ones.
    It holds while all ``conditions`` do. Where the crowd hides nothing, epsilon is the local loss and delta 0.
    """

    reports: int
    colluding: int
    conditions: tuple[str, ...]

    def __str__(self) -> str:
        loss = f"epsilon = {self.epsilon:.4g}" + (f", delta = {self.delta:g}" if self.delta else " (as locally)")
        colluders = f", {self.colluding:,} of them colluding" if self.colluding else ""
        return f"{loss}; {self.relation}, {self.reports:,}{colluders}; if {'; if '.join(self.conditions)}"


def published_guarantee(
    campaign: Campaign, reports: int, delta: float = DEFAULT_DELTA, colluding: int = 0
) -> PublishedGuarantee:
    """Bound what who sees only the publication learns of one of ``reports`` devices, as
    :mod:`ldp_aggregator.amplification` proves.

    Parameters
    ----------
    campaign
        Its document decides: mechanisms, their integers, and the weights of the questions.
    reports
        Devices that answered. Where the document has ``release_every``, the difference of two releases is a tally of at
        least so many devices, and no device is in two of them: the bound for ``release_every`` devices is that of all
        releases together. With ``answers: "all"`` those that answered every group, and the groups' bounds add up: a
        release waits for so many answers to each group, an answer is in one difference, and whether a device's answers
        to several groups are in the same one does not matter.
    delta
        Of the whole guarantee, from 1e-100 to 0.1.
    colluding
        Devices among them that tell the reader their coins; they hide nobody.

    Raises
    ------
    ValueError
        For a delta out of range and for negative numbers.
    """
    composed = _composed(campaign, delta)
    every = campaign.privacy.release_every
    published = _ONCE if every is None else (_RELEASES_OF_ALL if composed else _RELEASES).format(every)
    crowd = reports if every is None else min(reports, every)
    return _guarantee(campaign, crowd, delta, colluding, PUBLISHED_RELATION, (*_CONDITIONS, published, *composed))


def relay_guarantee(
    campaign: Campaign, batch: int, delta: float = DEFAULT_DELTA, colluding: int = 0
) -> PublishedGuarantee:
    """Bound what who runs the server learns of one device whose report came in a mixed batch of ``batch`` or more.

    To be stated only where every upload carried the relay's ``LDP-Relay-Batch`` of at least so many.

    Parameters and errors are those of :func:`published_guarantee`.
    """
    composed = _composed(campaign, delta)
    return _guarantee(campaign, batch, delta, colluding, relay_relation(campaign), (*_RELAY, *composed))


def relay_relation(campaign: Campaign) -> str:
    """The relation behind a relay, with what its number of devices counts: people, where the issuer signs what the
    relay admits by, beside a seal with a key of its own.
    """
    issuer = campaign.issuer
    if issuer is None or (campaign.gateway is not None and issuer.relay_modulus is None):
        return RELAY_RELATION.format(UPLOADS)
    tokens = "one" if issuer.tokens == 1 else str(issuer.tokens)
    return RELAY_RELATION.format(PEOPLE.format(tokens))


def published_together(
    parts: Iterable[tuple[Campaign, int]], delta: float = DEFAULT_DELTA, colluding: int = 0
) -> PublishedGuarantee:
    """The guarantee of one publication made of several campaigns and the devices that answered each.

    A device answers one campaign of a study, so that the largest epsilon and the largest delta of these hold; campaigns
    of different studies add up.
    Of the private round that a projection was fitted on nothing but its local epsilon is known here. ``colluding``
    devices are taken off every campaign.
    """
    given = list(parts)
    keys = {_key(campaign.study, campaign.id) for campaign, _ in given}
    each = [published_guarantee(campaign, reports, delta / len(keys), colluding) for campaign, reports in given]
    losses, deltas = _lost_in_fitting(campaign for campaign, _ in given), dict.fromkeys(keys, 0.0)
    if len(given) == 1 and not losses:
        return each[0]
    for (campaign, _), one in zip(given, each, strict=True):
        key = _key(campaign.study, campaign.id)
        losses[key] = max(losses.get(key, 0.0), math.inf if one.epsilon is None else one.epsilon)
        deltas[key] = max(deltas[key], one.delta)
    conditions = tuple(dict.fromkeys(condition for one in each for condition in one.conditions))
    loss, summed, reports = sum_up(losses.values()), sum_up(deltas.values()), sum(reports for _, reports in given)
    return PublishedGuarantee(loss, summed, PUBLISHED_RELATION, _PUBLIC, reports, colluding, conditions)


def published_by(tallies: Iterable[tuple[Campaign, Tally]], arrivals: Iterable[Arrivals] = ()) -> PublishedGuarantee:
    """The guarantee of one publication of what was counted; what ``arrivals`` count twice has none and hides nobody."""
    twice = max((one.twice for one in arrivals), default=0)
    parts = [(campaign, _crowd(campaign, tally)) for campaign, tally in tallies]
    guarantee = published_together(parts, colluding=2 * twice)
    if not twice:
        return guarantee
    return replace(guarantee, conditions=(*guarantee.conditions, _TWICE.format(twice)))


def _crowd(campaign: Campaign, tally: Tally) -> int:
    """The devices among which each hides: in a series, where one is in one window, those of the smallest."""
    crowds = [devices_counted(campaign, one.n.tolist()) for one in tally.windows]
    return min((crowd for crowd in crowds if crowd), default=0)


def studies_of(campaigns: Iterable[Campaign]) -> dict[str, float]:
    """The epsilon that a device can have lost in each study, or campaign of none, by name. It answers one campaign of
    a study, and a projection's private round is one: what was learned there is in the model too.
    """
    every = list(campaigns)
    lost = _lost_in_fitting(every)
    for campaign in every:
        key = _key(campaign.study, campaign.id)
        lost[key] = max(lost.get(key, 0.0), campaign.privacy.epsilon)
    return lost


def _lost_in_fitting(campaigns: Iterable[Campaign]) -> dict[str, float]:
    """The epsilon of every private round that a projection was fitted on, by the name of its study."""
    lost: dict[str, float] = {}
    for projection in (campaign.projection for campaign in campaigns):
        if projection is not None and projection.fitted_epsilon is not None:
            key = _key(projection.fitted_study, projection.fitted_on)
            lost[key] = max(lost.get(key, 0.0), projection.fitted_epsilon)
    return lost


def local_guarantee(lost: Mapping[str, float], public: tuple[str, ...] = LOCAL_PUBLIC) -> Guarantee:
    """The guarantee of the most that one device can have lost, who may be in every study."""
    return Guarantee(sum_up(lost.values()), 0.0, LOCAL_RELATION, public)


def sum_up(losses: Iterable[float]) -> float:
    """The least double that is not below the sum of losses: what is told of a loss is never less than it is."""
    each = list(losses)
    return math.inf if math.inf in each else float_up(sum(map(Fraction, each), Fraction(0)))


def _key(study: str | None, campaign_id: str) -> str:
    return f"study {study}" if study else campaign_id


def _guarantee(
    campaign: Campaign, reports: int, delta: float, colluding: int, relation: str, conditions: tuple[str, ...]
) -> PublishedGuarantee:
    if not LEAST_DELTA <= delta <= LARGEST_DELTA:
        raise ValueError(f"delta must be from {LEAST_DELTA:g} to {LARGEST_DELTA:g}, not {delta!r}")
    if reports < 0 or colluding < 0:
        raise ValueError(f"reports and colluding are numbers of devices, not {reports} and {colluding}")
    promise = campaign.privacy.crowd
    if promise is not None and reports >= promise.devices and colluding <= promise.devices - promise.reports:
        # The campaign's own promise, which it could not be read without keeping.
        about = relation, _PUBLIC, reports, promise.devices - promise.reports, conditions
        return PublishedGuarantee(promise.epsilon, promise.delta, *about)
    local = campaign.realised_epsilon
    crowd = reports - colluding
    epsilon = _total(campaign, crowd, delta) if crowd > 1 else None
    if epsilon is None or epsilon >= local:
        return PublishedGuarantee(local, 0.0, relation, _PUBLIC, reports, colluding, conditions)
    return PublishedGuarantee(epsilon, delta, relation, _PUBLIC, reports, colluding, conditions)


def _composed(campaign: Campaign, delta: float) -> tuple[str, ...]:
    if campaign.privacy.answers != "all":
        return ()
    return (_ALL.format("numerical (dp-accounting)" if can_compose(delta) else "basic"),)


def _total(campaign: Campaign, crowd: int, delta: float) -> float | None:
    """The sum over the groups, one with ``answers: "one"``; a group that is not hidden costs its own loss. With the
    extra ``composition`` what their curves come to together, where that is less.
    """
    if campaign.realised_epsilon > MOST_EXPONENT:
        return None
    blankets = campaign_blankets(campaign)
    total = 0.0
    for blanket in blankets:
        found = epsilon_bound(blanket, crowd, delta / len(blankets))
        if found is None:
            found = math.nextafter(math.log(blanket.ratio) * (1 + 1e-12), math.inf)
        total += found
    total *= 1 + 1e-12
    if len(blankets) > 1 and can_compose(delta):
        return min(total, composed_bound(blankets, crowd, delta, total / len(blankets)))
    return total


@dataclass(frozen=True)
class Relayed:
    """The word of relays for one campaign as of one moment: a ``guarantee``, or in ``why_not`` what forbids it."""

    campaign: str
    arrivals: Arrivals
    guarantee: PublishedGuarantee | None
    why_not: str | None

    def to_json(self) -> dict[str, Any]:
        """As estimates, models and ``campaign show --json`` have it."""
        return {
            "campaign": self.campaign,
            "reports": self.arrivals.reports,
            "least_batch": self.arrivals.least_batch,
            "otherwise": self.arrivals.otherwise,
            "guarantee": self.guarantee and self.guarantee.to_json(),
            "why_not": self.why_not,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Relayed:
        """The inverse of :meth:`to_json`, but for what is in the sums twice."""
        arrivals = Arrivals(document["reports"], document["reports"] - document["otherwise"], document["least_batch"])
        guarantee = document["guarantee"] and PublishedGuarantee(**document["guarantee"])
        return cls(document["campaign"], arrivals, guarantee, document["why_not"])

    def __str__(self) -> str:
        return str(self.guarantee) if self.guarantee else f"nothing beyond the local guarantee: {self.why_not}"


def relayed(campaign: Campaign, arrivals: Arrivals) -> Relayed:
    """The guarantee for n = the least batch, only where every counted report came in a batch that a relay vouched for.

    A batch hides no more than all devices that answered, and no device in it whose report another store had, too.
    """
    why_not = _why_not(arrivals)
    if why_not is not None or arrivals.least_batch is None:
        return Relayed(campaign.id, arrivals, None, why_not)
    crowd = min(arrivals.least_batch, arrivals.reports // len(campaign.pools))
    return Relayed(campaign.id, arrivals, relay_guarantee(campaign, max(0, crowd - arrivals.twice)), None)


def counted_twice(arrivals: Iterable[Arrivals]) -> dict[str, int]:
    """Reports of all campaigns that are known to be in the sums twice, and that may be."""
    every = list(arrivals)
    return {"known": sum(one.overlap for one in every), "at_most": sum(one.twice for one in every)}


def _why_not(arrivals: Arrivals) -> str | None:
    if not arrivals.reports:
        return "no report was counted yet"
    if arrivals.vouched <= 0 or arrivals.least_batch is None:
        return f"none of {arrivals.reports:,} reports came in a batch that a relay vouched for"
    if arrivals.otherwise:
        return (
            f"at least {arrivals.otherwise:,} of {arrivals.reports:,} reports came otherwise than in a batch "
            "that a relay vouched for"
        )
    return None
