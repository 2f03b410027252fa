"""The errors that an app has to expect from the client: few types, each with a stable ``code``.

``protocols.LdpError`` is the base of them all, and of what wrong documents, records and models raise. No message holds
a value of anybody's record.
"""

from __future__ import annotations

from typing import Final

from protocols.errors import LdpError


class ClientError(LdpError):
    """Base of everything this package raises on its own account."""

    def __init__(self, code: str, problem: str) -> None:
        super().__init__(problem)
        self.code = code


class ConfigurationError(ClientError, ValueError):
    """Something an app or its environment was set up with cannot be used: an address, a proxy, a campaign's id."""


class ConsentError(ClientError):
    """The person has not agreed to this campaign, or has withdrawn."""

    def __init__(self) -> None:
        super().__init__("consent-missing", "nobody has consented to this campaign; call grant() once they have")


class RefusedError(ClientError):
    """A campaign that this device will not answer; ``code`` is one of :data:`REFUSALS`. Nothing was drawn or spent."""


class NotFetchedError(ClientError):
    """The campaign's document is not at hand, and contributing never asks for it: the time of a request would tell the
    time of the event, and keeping the record until there is one would put it on disk as it is.
    """

    def __init__(self) -> None:
        super().__init__("not-fetched", "the campaign is not at hand; call fetch(), now or when the app starts")


class QuotaError(ClientError):
    """The queue of unsent reports is full; nothing was drawn and nothing was spent."""


class StorageError(ClientError):
    """The device's storage cannot be used; ``code`` is one of :data:`STORAGE_PROBLEMS`. Nothing was changed."""

    def __init__(self, code: str) -> None:
        super().__init__(code, STORAGE_PROBLEMS[code])


class TransportError(ClientError):
    """No usable answer came back; ``code`` is one of :data:`TRANSPORT_PROBLEMS`."""

    def __init__(self, code: str) -> None:
        super().__init__(code, TRANSPORT_PROBLEMS[code])


class ServerError(ClientError):
    """The server answered, and refused. ``status`` is the HTTP status, ``code`` the server's own where it gave one."""

    def __init__(self, status: int, code: str, problem: str) -> None:
        super().__init__(code, problem)
        self.status = status


class ModelUnavailableError(ClientError):
    """There is no model to classify with."""

    def __init__(self) -> None:
        super().__init__("no-model", "the campaign has no published model yet")


REFUSALS: Final = {
    "loss-above-cap": "the campaign costs more than max_epsilon",
    "total-above-cap": "the campaign costs more than max_total_epsilon leaves",
    "study-answered": "the device has answered another campaign of the same study; one is the most",
    "campaign-not-open": "the campaign opens later",
    "campaign-closed": "the campaign has closed",
    "switched-off": "the person has switched contributing off",
    "copied-storage": "the storage file is a copy or was restored; the original may answer, or have answered",
    "other-recipient": "the person agreed to another URL",
    "directory-expired": "no directory of the publisher's holds now; fetch() asks for a new one",
    "not-in-directory": "the publisher's directory does not name the campaign",
}

STORAGE_PROBLEMS: Final = {
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
    "no-headers": "the app could not give the headers of the upload",
}
