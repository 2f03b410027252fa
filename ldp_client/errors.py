"""The errors of the client: each type means a different thing to do, and its ``code`` tells the cases apart.

``ldp_protocols.LdpError`` is the base of them all, and of what wrong documents and records raise; raised itself it
means that the app or its environment was set up wrongly. No message holds a value of anybody's record.
"""

from __future__ import annotations

from typing import Final

from ldp_protocols.errors import LdpError


class ConsentError(LdpError):
    """The person has not agreed to this campaign, or has withdrawn."""

    def __init__(self) -> None:
        super().__init__("consent-missing", "nobody has consented to this campaign; call grant() once they have")


class RefusedError(LdpError):
    """A campaign that this device will not answer; ``code`` is one of :data:`REFUSALS`. Nothing was drawn or spent."""

    def __init__(self, code: str, problem: str | None = None) -> None:
        super().__init__(code, problem or REFUSALS[code])


class StorageError(LdpError):
    """The device's storage cannot be used; ``code`` is one of :data:`STORAGE_PROBLEMS`. Nothing was changed."""

    def __init__(self, code: str, problem: str | None = None) -> None:
        super().__init__(code, problem or STORAGE_PROBLEMS[code])


class TransportError(LdpError):
    """No usable answer: ``code`` is of :data:`TRANSPORT_PROBLEMS`, or a refusal's own, with its HTTP ``status``."""

    def __init__(self, code: str, problem: str | None = None, status: int | None = None) -> None:
        super().__init__(code, problem or TRANSPORT_PROBLEMS[code])
        self.status = status


UNSEALABLE: Final = {
    "no-relay": "the campaign takes uploads sealed and through a relay only; name one with Device(..., relay=...)",
    "not-installed": "sealing uploads needs the library pyhpke; pip install 'ldp-bayes-client[ohttp]' has it",
}
"""Why a device cannot send to a campaign with a gateway; it never sends to one in the clear."""

REFUSALS: Final = {
    # Contributing never asks for these two: the time of a request would tell the time of the event, and keeping the
    # record until there is one would put it on disk as it is.
    "token-missing": "answers to this campaign show a token; call obtain_token(), now or when the app starts",
    "not-fetched": "the campaign is not at hand; call fetch(), now or when the app starts",
    "loss-above-cap": "the campaign costs more than max_epsilon, or with a crowd max_if_both_collude, allows",
    "crowd-above-cap": "the campaign's crowd promises less than max_crowd_epsilon asks for",
    "crowd-cap-missing": "the campaign has a crowd; max_crowd_epsilon and max_if_both_collude allow what it costs",
    "total-above-cap": "the campaign costs more than max_total_epsilon leaves",
    "study-answered": "the device has answered another campaign of the same study; one is the most",
    "campaign-not-open": "the campaign opens later",
    "campaign-closed": "the campaign has closed",
    "campaign-closing": "the campaign has closed, which may still be taken back",
    "campaign-full": "the campaign has all the answers that it takes",
    "campaign-deleted": "the campaign was deleted",
    "window-not-open": "the window in which this device answers is still to come",
    "window-over": "the window in which this device was to answer is over, and it answers in no other",
    "switched-off": "the person has switched contributing off",
    "copied-storage": "the storage file is a copy or was restored; the original may answer, or have answered",
    "other-recipient": "the person agreed to another URL",
    "directory-expired": "no directory of the publisher's holds now; fetch() asks for a new one",
    "not-in-directory": "the publisher's directory does not name the campaign",
    **UNSEALABLE,
}

STORAGE_PROBLEMS: Final = {
    "queue-full": "the queue of unsent reports is full; try again when some have been sent",
    "storage-full": "the disk or the database is full; make room, nothing was lost",
    "storage-read-only": "the storage is read-only; it must be writable",
    "storage-corrupt": "the storage is damaged; it is left as it is, because its ledger must not be forgotten",
    "storage-busy": "another process or thread holds the storage; try again later",
    "storage-newer": "the storage was written by a later version of this software",
    "storage-unavailable": "the storage cannot be opened, read or written",
    "storage-forked": "a storage in memory was copied by a fork; make one in every process",
}

TRANSPORT_PROBLEMS: Final = {
    "unreachable": "the server cannot be reached",
    "timeout": "the server did not answer in time",
    "tls-untrusted": "the server's TLS certificate is not trusted",
    "answer-too-long": "the server's answer is longer than any valid one",
    "connection-lost": "the connection broke before the answer was complete",
    "cancelled": "the exchange was stopped before anything of it was sent",
    "not-the-aggregator": "something else answered in the server's place, such as the login page of a public network",
    "proxy-refused": "the proxy does not connect to the server",
    "bad-proxy": "the proxy of the environment cannot be used; it must be like http://host:port or socks5h://host:port",
    "bad-request": "the request has headers that HTTP does not allow",
    "bad-url": "the app's policy does not allow the campaign's address",
    "no-model": "the campaign has no published model yet",
    "no-headers": "the app could not give the headers of the upload",
    "not-the-gateway": "something else than the campaign's gateway answered, or the answer was changed on its way",
    **UNSEALABLE,
}
