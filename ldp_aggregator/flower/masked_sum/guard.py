"""What a node of a masked sum refuses, whatever the server asks of it; pure, of the values that messages carry.

Flower's own mod checks that the stages come in order. The names of stages and values are those of its protocol.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from ldp_aggregator.flower.masked_sum.agreement import (
    CLIPPING_RANGE,
    MAX_WEIGHT,
    MODULUS,
    TARGET_RANGE,
    Agreement,
)

TRAIN: Final = "train"
SETUP: Final = "setup"
SHARE_KEYS: Final = "share_keys"
COLLECT: Final = "collect_masked_vectors"
UNMASK: Final = "unmask"
STAGE: Final = "stage"


class GuardError(ValueError):
    """The server asked for something that a node does not do. The text goes to the server, and tells nothing else."""


@dataclass(frozen=True)
class Progress:
    """What a node remembers of a sum: the nodes whose keys it was given, those whose key shares came, and whether its
    masked share, and its shares of the others' secrets, have left.
    """

    known: frozenset[int] = frozenset()
    sources: frozenset[int] = frozenset()
    collected: bool = False
    unmasked: bool = False


def checked_stage(
    agreement: Agreement, progress: Progress, me: int, message_type: str, values: Mapping[str, Any]
) -> Progress:
    """The progress after this message, which may go on to Flower's mod. Raises GuardError."""
    if message_type != TRAIN:
        raise GuardError(f'a node of a masked sum answers "{TRAIN}" messages alone, not "{message_type}"')
    stage = values.get(STAGE)
    rest = {name: value for name, value in values.items() if name != STAGE}
    if stage == SETUP:
        return _setup(agreement, progress, rest)
    if stage == SHARE_KEYS:
        return _share_keys(agreement, progress, me, rest)
    if stage == COLLECT:
        return _collect(agreement, progress, me, rest)
    if stage == UNMASK:
        return _unmask(agreement, progress, me, rest)
    raise GuardError(f"{stage!r:.40} is no stage of a masked sum")


def expected_setup(agreement: Agreement) -> dict[str, int | float]:
    """The parameters that this node takes part with, and no others. Every node is a neighbour of every other."""
    return {
        "sample_num": agreement.nodes,
        "share_num": agreement.nodes,
        "threshold": agreement.threshold,
        "clipping_range": CLIPPING_RANGE,
        "target_range": TARGET_RANGE,
        "mod_range": MODULUS,
        "max_weight": MAX_WEIGHT,
    }


def check_in_clear(parameters: Collection[object], numbers: Mapping[str, Any], texts: Mapping[str, Any]) -> None:
    """What travels beside the masked vector is the same for every node and table. Raises GuardError."""
    if parameters:
        raise GuardError("the share itself would travel beside its masked form")
    if dict(numbers) != {"num_examples": 1}:
        raise GuardError("the number of examples travels in clear, and must be 1")
    if texts:
        raise GuardError("metrics travel in clear, and there must be none")


def _setup(agreement: Agreement, progress: Progress, values: Mapping[str, Any]) -> Progress:
    if progress.collected:
        raise GuardError("this node's share is in a sum already; a second one would show it")
    expected = expected_setup(agreement)
    for name, right in expected.items():
        value = values.get(name)
        if type(value) is not type(right) or value != right:
            raise GuardError(f"{name} must be {right!r}, not {value!r:.40}")
    _only(values, set(expected))
    return Progress()


def _share_keys(agreement: Agreement, progress: Progress, me: int, values: Mapping[str, Any]) -> Progress:
    known = frozenset(int(name) for name in values if name.isascii() and name.isdigit())
    if len(known) != len(values):
        raise GuardError("keys are listed by the nodes' numbers, each once")
    if not agreement.threshold <= len(known) <= agreement.nodes:
        raise GuardError(f"keys of {agreement.threshold} to {agreement.nodes} nodes are due, not of {len(known)}")
    if me not in known:
        raise GuardError("this node's own key is not among those listed")
    return replace(progress, known=known)


def _collect(agreement: Agreement, progress: Progress, me: int, values: Mapping[str, Any]) -> Progress:
    if progress.collected:
        raise GuardError("this node's share is in a sum already; a second one would show it")
    _only(values, {"ctxts", "srcs"})
    sources = _nodes(values, "srcs")
    if not sources <= progress.known - {me}:
        raise GuardError("key shares come from other nodes than those whose keys were listed")
    if len(sources) + 1 < agreement.least_active:
        raise GuardError(f"{len(sources) + 1} nodes are left; a sum takes {agreement.least_active}")
    return replace(progress, sources=sources | {me}, collected=True)


def _unmask(agreement: Agreement, progress: Progress, me: int, values: Mapping[str, Any]) -> Progress:
    if progress.unmasked or not progress.collected:
        raise GuardError("shares of secrets are given once, after the masked share")
    _only(values, {"active_nids", "dead_nids"})
    active, dead = _nodes(values, "active_nids"), _nodes(values, "dead_nids")
    if active & dead:
        raise GuardError("a node is listed as there and as not there; both secrets would show its share")
    if me not in active:
        raise GuardError("this node's share is listed as not there")
    if active | dead != progress.sources:
        raise GuardError("the nodes listed are not those that shared their secrets")
    if len(active) < agreement.least_active:
        raise GuardError(f"the sum would be of {len(active)} nodes; it takes {agreement.least_active}")
    return replace(progress, unmasked=True)


def _nodes(values: Mapping[str, Any], name: str) -> frozenset[int]:
    listed = values.get(name)
    if type(listed) is not list or not all(type(one) is int for one in listed) or len(set(listed)) != len(listed):
        raise GuardError(f"{name} must be a list of nodes, each once")
    return frozenset(listed)


def _only(values: Mapping[str, Any], names: set[str]) -> None:
    if set(values) != names:
        raise GuardError(f"this stage has the values {', '.join(sorted(names))} and no others")
