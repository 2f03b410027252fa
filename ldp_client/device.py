"""The install: one secret, one ledger, the consents of one person, and one sender for all its campaigns."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from ldp_client.delivery.install import DevicePermits, Install
from ldp_client.delivery.schedule import OnEvent
from ldp_client.delivery.sender import BackgroundDriver, Sender
from ldp_client.errors import StorageError
from ldp_client.ledger import Ledger, read_installation
from ldp_client.log import SILENT, Log, Teller
from ldp_client.network import SHARED_TRANSPORT
from ldp_client.policy import CLOSE_TIMEOUT, DEFAULT_POLICY, STORAGE_WAIT, Policy
from ldp_client.refusals import Caps, read_cap
from ldp_client.runtime import SYSTEM_CLOCK, Clock, within
from ldp_client.storage.contract import Cache, scope_prefix

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

    from ldp_client.campaign import DeviceCampaign
    from ldp_client.delivery.rights import QuarantinedReport, SentReport
    from ldp_client.delivery.status import DeviceStatus
    from ldp_client.network.aggregator import Headers
    from ldp_client.network.transport import Transport
    from ldp_client.storage.contract import Storage
    from ldp_protocols import Coins


class Device:
    """One install of an app on one device, or, by :meth:`scope`, one user of a backend.

    Making one touches neither network nor disk and starts no thread; nothing is written before somebody decides.
    Thread-safe, fork-safe, and safe with several processes on one storage file. A ``timeout`` is in seconds and is
    kept, see :class:`ldp_client.DeviceCampaign`; :attr:`enabled` waits for the file as long as the default.
    Raises LdpError for a cap that is no finite number above 0, and for a relay that nothing may be sent to.

    Parameters
    ----------
    storage
        A file path, ``":memory:"``, or a :class:`ldp_client.storage.contract.Storage`. Beside a file ``NAME`` stand
        ``NAME.cache`` and ``NAME.here``; see docs/client.md about backups.
    max_total_epsilon
        Hard cap on the privacy loss over the life of the install; each scope's own.
    transport
        None takes the standard library's, shared by the devices of this process.
    clock
        Anything like the module ``time``.
    coins
        The randomness of secrets and answers; None but in tests and simulations.
    policy
        See :class:`ldp_client.policy.Policy`.
    headers
        Called with the body of every upload; what it returns (a token, an attestation) goes along.
    relay
        The address of an Oblivious HTTP relay (RFC 9458), on another host than any aggregator's, and somebody else's.
        Documents, models, directories and standings are fetched from it, beside that address, and uploads to campaigns
        with a gateway go by it, sealed. Without one, or without the extra ``ohttp``, such a campaign is refused.
    on_event
        Called with an :class:`ldp_client.Event` from whichever thread something happens in.
    log
        Called with an :class:`ldp_client.Step` for each step and each failure with its cause, such as
        :func:`ldp_client.to_logging`; it is told nothing of a person.

    Examples
    --------
    >>> device = Device(":memory:", max_total_epsilon=2.0)
    >>> print(device.ledger())
    This device has contributed to no campaign and has lost no privacy (epsilon 0 of at most 2).
    """

    def __init__(
        self,
        storage: str | os.PathLike[str] | Storage,
        *,
        max_total_epsilon: float,
        transport: Transport | None = None,
        clock: Clock | None = None,
        coins: Coins | None = None,
        policy: Policy = DEFAULT_POLICY,
        headers: Headers | None = None,
        relay: str | None = None,
        on_event: OnEvent | None = None,
        log: Log | None = None,
    ) -> None:
        from ldp_client.storage.location import open_cache, open_marker, open_storage

        self.policy = policy
        self._max_total_epsilon = read_cap("max_total_epsilon", max_total_epsilon)
        self._scope = ""
        ledger, cached = open_storage(storage), open_cache(storage)
        clock = SYSTEM_CLOCK if clock is None else clock
        teller = SILENT if log is None else Teller(log, clock)
        transport = teller.transport(transport or SHARED_TRANSPORT)
        if relay is not None:
            from ldp_client.network.transport import check_relay

            check_relay(relay, allow_plain_http=policy.allow_plain_http)
        permits = DevicePermits(ledger, transport, clock, policy, headers, relay)
        sender = Sender(ledger, permits, clock=clock, policy=policy, on_event=on_event, teller=teller)
        self._install = Install(
            storage=ledger,
            cached=cached,
            cache=Cache(cached),
            marker=open_marker(storage),
            transport=transport,
            clock=clock,
            coins=coins,
            policy=policy,
            permits=permits,
            teller=teller,
            sender=sender,
            driver=BackgroundDriver(sender),
        )

    @staticmethod
    def default_path(app: str) -> Path:
        """The path of an app's storage on this platform; makes the folder, for its owner only."""
        from ldp_client.storage.location import default_path

        return default_path(app)

    def scope(self, name: str) -> Device:
        """One user of a backend: a device with a secret, a ledger and consents of its own, in the same storage, with
        the same sender. Costs nothing to make; the name is printable ASCII without a slash, and is never sent. Raises
        LdpError.
        """
        scope_prefix(name or "/")
        scoped = object.__new__(Device)
        scoped.__dict__.update(self.__dict__)
        scoped._scope = name
        return scoped

    def campaign(
        self,
        url: str,
        campaign_id: str,
        *,
        max_epsilon: float,
        max_crowd_epsilon: float | None = None,
        max_if_both_collude: float | None = None,
        publisher: str | Collection[str] | None = None,
    ) -> DeviceCampaign:
        """A campaign, as this device sees it; touches neither network nor disk.

        ``url`` is the aggregator's base URL: https, or plain http on loopback. ``max_epsilon`` is a hard cap on the
        privacy loss in this campaign. One with a crowd is refused unless the app sets the two caps that then take its
        place: ``max_crowd_epsilon`` on what mixed answers reveal, ``max_if_both_collude`` on the loss where relay and
        aggregator work together. ``publisher`` is the public key that has to have signed campaign and model (of
        several, one of them), None believes the server. Raises LdpError for what is none, and where the device's relay
        is on the aggregator's host.
        """
        from ldp_client.campaign import DeviceCampaign

        of_crowd = {"max_crowd_epsilon": max_crowd_epsilon, "max_if_both_collude": max_if_both_collude}
        crowd, collude = (None if cap is None else read_cap(name, cap) for name, cap in of_crowd.items())
        caps = Caps(read_cap("max_epsilon", max_epsilon), self._max_total_epsilon, crowd, collude)
        return DeviceCampaign(self._install, self._scope, self._install.aggregator(url, campaign_id, publisher), caps)

    # The person's switch, copy and eraser

    @property
    def enabled(self) -> bool:
        """The person's switch, on unless it was turned off. Off, nothing is answered and nothing is sent, now or
        after a restart; what is queued waits. Off on the device itself, it is off for all scopes. Raises StorageError.
        :meth:`switch` and :meth:`status` do the same within a ``timeout``.
        """
        with self._install.storage.transaction(write=False) as transaction:
            return read_installation(transaction, self._scope).enabled

    @enabled.setter
    def enabled(self, enabled: bool) -> None:
        self.switch(enabled)

    def switch(self, enabled: bool, *, timeout: float = STORAGE_WAIT) -> None:
        """Set :attr:`enabled`. Raises StorageError, and nothing has then changed."""
        from ldp_client.delivery.rights import switch

        with within(timeout):
            switch(self._install, self._scope, enabled)

    def ledger(self, *, timeout: float = STORAGE_WAIT) -> Ledger:
        """Tell what was spent in all campaigns; ``str()`` of it is for the person. Raises StorageError."""
        with within(timeout), self._install.storage.transaction(write=False) as transaction:
            return Ledger(read_installation(transaction, self._scope).receipts, self._max_total_epsilon)

    def sent(self, *, timeout: float = STORAGE_WAIT) -> tuple[SentReport, ...]:
        """Every report whose upload began: question, randomised answer, time, address, reply. Raises StorageError."""
        from ldp_client.delivery.rights import sent_reports

        with within(timeout):
            return sent_reports(self._install, self._scope)

    def quarantined(self, *, timeout: float = STORAGE_WAIT) -> tuple[QuarantinedReport, ...]:
        """Reports refused by a server and set apart; :meth:`~ldp_client.campaign.DeviceCampaign.requeue` retries them.
        Raises StorageError.
        """
        from ldp_client.delivery.rights import quarantined_reports

        with within(timeout):
            return quarantined_reports(self._install, self._scope)

    def export(self, *, timeout: float = STORAGE_WAIT) -> dict[str, Any]:
        """A copy of everything that is kept about the person, ready for JSON, except the secret: whoever has that can
        recognise this device's reports. Raises StorageError.
        """
        from ldp_client.delivery.rights import copy_of

        with within(timeout):
            return copy_of(self._install, self._scope)

    def erase(self, *, timeout: float | None = None) -> None:
        """Delete everything: secret, ledger, consents, queue and log; on the device itself, of all scopes and with what
        was fetched. What is under way is stopped, or waited for like in
        :meth:`~ldp_client.campaign.DeviceCampaign.withdraw`.

        What follows is a new device, to every server and to its own caps. What was sent stays sent: an answer that was
        counted is a number in a sum, and nobody can take it out. How long a server keeps what it could be found by is
        with the operator (``keep_days`` of the campaign, where it promises that). Raises StorageError
        where nothing was deleted, or all but what was fetched: erase again.
        """
        from ldp_client.delivery.rights import erase

        with within(timeout):
            erase(self._install, self._scope)

    def adopt(self, *, timeout: float = STORAGE_WAIT) -> None:
        """The app vouches that this storage was moved, not copied: nothing else answers with its secret, and no later
        state of it ever did. Raises StorageError.
        """
        install = self._install
        with within(timeout), install.storage.transaction(write=True) as transaction:
            install.mark(transaction, None)

    # Delivery

    def start(self, *, first_delay: float | None = None) -> None:
        """Deliver from a background thread for all campaigns and scopes; ``first_delay`` None takes the policy's."""
        if first_delay is None:
            policy = self.policy
            first_delay = policy.relayed_first_delay if self._install.permits.relay else policy.first_delay
        self._install.driver.start(first_delay)

    def run_once(self, timeout: float, *, first_delay: float = 0.0, stop: Callable[[], bool] = lambda: False) -> bool:
        """Deliver within ``timeout`` seconds, in the calling thread; True when nothing is left to send. Never raises.

        ``first_delay`` spreads the first send at random; a host that chooses the moment itself leaves it 0. ``stop`` is
        asked between tries.
        """
        return self._install.sender.run_once(timeout, first_delay=first_delay, stop=stop)

    def close(self, timeout: float | None = None) -> None:
        """Stop the background thread, waiting up to ``timeout`` seconds (None: two); unsent reports stay queued."""
        self._install.driver.close(CLOSE_TIMEOUT if timeout is None else timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def status(self, *, timeout: float = STORAGE_WAIT) -> DeviceStatus:
        """Tell what happened so far. Never raises; a storage that fails, or is held by others, is the ``problem``."""
        from ldp_client.delivery.status import DeviceStatus, device_status

        install = self._install
        try:
            with within(timeout), install.storage.transaction(write=False) as transaction:
                return device_status(install, transaction, self._scope)
        except StorageError as error:
            return DeviceStatus(running=install.driver.running, problem=error.code)
