"""The health of a server: everything that is wrong with it, by its metrics, for pages and commands alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ldp_aggregator.service.verdicts import ACT, WATCH
from ldp_aggregator.service.words import many, short_id, size

LEAST_FREE: Final = 1e9
"""Bytes on a store's disk below which it is soon full."""
DAY: Final = 86400
SOON: Final = 14 * DAY
"""Seconds before a certificate or a publisher's directory ends in which that is told."""
MOST_SKEW: Final = 60.0
"""Seconds between two clocks."""
RUNBOOK: Final = "docs/runbook.md#"


@dataclass(frozen=True)
class ServerFacts:
    """A server's facts, as metrics tell them; None where one has no such thing. Times are seconds since 1970."""

    now: float
    not_ready: str = ""
    """A problem's code, and its title."""
    store_fails: bool = False
    failing: Sequence[str] = ()
    keyless: Sequence[str] = ()
    unsigned: Sequence[str] = ()
    damaged: int = 0
    free_bytes: float | None = None
    certificate_ends: float | None = None
    directory_ends: float | None = None
    clock: float | None = None
    titles: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        values: Mapping[tuple[str, str], float],
        now: float,
        *,
        not_ready: str = "",
        store_fails: bool = False,
        titles: Mapping[str, str] | None = None,
    ) -> ServerFacts:
        """The facts in metrics, by name and label."""

        def labels(name: str) -> list[str]:
            return sorted(label for found, label in values if found == f"ldp_{name}")

        def least(name: str) -> float | None:
            return min((value for (found, _), value in values.items() if found == f"ldp_{name}"), default=None)

        return cls(
            now,
            not_ready,
            store_fails,
            labels("campaign_failing"),
            labels("gateway_key_missing"),
            labels("campaign_unsigned"),
            int(least("damaged_campaigns") or 0),
            least("free_bytes"),
            least("certificate_expires_timestamp_seconds"),
            least("directory_expires_timestamp_seconds"),
            least("time_seconds"),
            titles or {},
        )

    def named(self, campaign_id: str) -> str:
        """A campaign by its title and the beginning of its id."""
        title = self.titles.get(campaign_id, "campaign")
        return f"{title} ({short_id(campaign_id)})"


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with a server: a ``mood``, a sentence, and its ``entry`` in the runbook."""

    mood: str
    text: str
    entry: str

    def __str__(self) -> str:
        return f"{self.text}: {RUNBOOK}{self.entry}"


def findings(facts: ServerFacts) -> Iterator[Finding]:
    """Everything that is wrong with a server, what stops answers first."""
    if facts.not_ready:
        yield Finding(ACT, f"not ready: {facts.not_ready}", facts.not_ready.partition(" ")[0])
    if facts.store_fails:
        yield Finding(ACT, "the last write to the store failed", "storeerrors")
    for name in facts.failing:
        yield Finding(ACT, f"{facts.named(name)} cannot be counted", "campaignfailing")
    for name in facts.keyless:
        fault = "is sealed to a gateway's key that this server does not have"
        yield Finding(ACT, f"{facts.named(name)} {fault}", "gatewaykeymissing")
    if facts.damaged:
        what = "campaign goes on" if facts.damaged == 1 else "campaigns go on"
        yield Finding(ACT, f"{facts.damaged:,} {what} although a part of what is stored is damaged", "storedamaged")
    if facts.free_bytes is not None and facts.free_bytes < LEAST_FREE:
        yield Finding(ACT, f"{size(facts.free_bytes)} are left on the store's disk", "diskfull")
    if facts.clock is not None and abs(facts.clock - facts.now) > MOST_SKEW:
        yield Finding(ACT, f"its clock is {abs(facts.clock - facts.now):,.0f} seconds off", "clockskew")
    for name in facts.unsigned:
        yield Finding(WATCH, f"{facts.named(name)} is named by no directory of a publisher", "campaignunsigned")
    ends = (("certificate", "the certificate", facts.certificate_ends),)
    for entry, what, end in (*ends, ("directory", "a publisher's directory", facts.directory_ends)):
        if end is not None and end - facts.now < SOON:
            left = end - facts.now
            fault = "has ended" if left <= 0 else f"ends in {many(int(left / DAY), 'day')}"
            yield Finding(ACT if left <= 0 else WATCH, f"{what} {fault}", f"{entry}ends")
