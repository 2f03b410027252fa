"""The person's eraser, and the switch: what stops everything at once."""

from __future__ import annotations

from ldp_client.delivery.install import Install
from ldp_client.delivery.machine import Place
from ldp_client.delivery.queue import outboxes
from ldp_client.ledger.installation import Installation, read_installation, write_installation
from ldp_client.runtime import seconds_left
from ldp_client.storage.scoped import scope_prefix
from protocols.light import replace


def switch(install: Install, scope: str, enabled: bool) -> None:
    """Answer and send, or do neither. Raises StorageError."""
    with install.storage.transaction(write=True) as transaction:
        device = read_installation(transaction, scope) or Installation()
        write_installation(transaction, replace(device, enabled=bool(enabled)), scope)
        for outbox in outboxes(transaction, scope) if scope else ():
            outbox.pause(transaction, paused=not enabled)
    if not enabled:
        _stop(install, scope)
    install.driver.wake()


def erase(install: Install, scope: str) -> None:
    """Delete what is kept of a scope; for the scope "" everything, with what was fetched. Raises StorageError."""
    with install.storage.transaction(write=True) as transaction:
        for outbox in outboxes(transaction, scope):
            outbox.clear(transaction)
        for key, _ in transaction.items(scope_prefix(scope)):
            transaction.delete(key)
    if (flying := _stop(install, scope)) is not None:
        install.sender.flight.await_landing(flying, seconds_left(install.policy.close_timeout))
    if not scope:
        with install.cached.transaction(write=True) as transaction:
            for key, _ in transaction.items(""):
                transaction.delete(key)
        if install.marker is not None:
            install.marker.delete()


def _stop(install: Install, scope: str) -> Place | None:
    """Stop what is under way of this scope, of "" of any; the place of what could not be stopped."""
    flight = install.sender.flight
    flying = flight.place
    if flying is None or (scope and flying.scope != scope):
        return None
    return None if flight.cancel(flying) else flying
