"""The settings of the two sides: a node by its own configuration, the server by that of the run.

A node's settings are read from the configuration of its SuperNode and from nowhere else: whoever starts a run could
otherwise name the table, the cap, or a ledger that is still empty.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

NODE_KEYS: Final = ("table", "ledger", "campaign-id", "max-epsilon")
"""Of ``flower-supernode --node-config "table='north.csv' ..."``."""


@dataclass(frozen=True)
class NodeSettings:
    """``campaign_id``: the one campaign that this node agreed to. ``max_epsilon``: the most that all campaigns in its
    ledger, those of other times included, may cost together.
    """

    table: Path
    ledger: Path
    campaign_id: str
    max_epsilon: float


@dataclass(frozen=True)
class RoundSettings:
    """``nodes``: how many to wait for; ``least_nodes``: fewer shares give no model; ``groups``: above 1 the median over
    the models of so many groups; ``seconds``: how long to wait in all; ``output``: where to write the model.
    """

    nodes: int
    least_nodes: int
    groups: int
    seconds: float
    output: Path | None


def node_settings(config: Mapping[str, object]) -> NodeSettings:
    """A node's settings from its SuperNode's configuration. Raises ValueError, which says what is right."""
    table, ledger, campaign_id = (_text(config, key, "node") for key in NODE_KEYS[:3])
    most = _number(config, NODE_KEYS[3], "node")
    if not most > 0:
        raise ValueError(f"node configuration: max-epsilon must be above 0, not {most}")
    return NodeSettings(Path(table), Path(ledger), campaign_id, most)


def round_settings(config: Mapping[str, object]) -> RoundSettings:
    """The server's settings from the run's configuration. Raises ValueError, which says what is right."""
    nodes, least, groups = (_count(config, key) for key in ("nodes", "least-nodes", "groups"))
    seconds = _number(config, "seconds", "run")
    if not 1 <= least <= nodes:
        raise ValueError(f"run configuration: least-nodes must be from 1 to nodes ({nodes}), not {least}")
    if not 1 <= groups <= least:
        raise ValueError(f"run configuration: groups must be from 1 to least-nodes ({least}), not {groups}")
    if not seconds > 0:
        raise ValueError(f"run configuration: seconds must be above 0, not {seconds}")
    output = config.get("output", "")
    if type(output) is not str:
        raise ValueError("run configuration: output must be a file's name, or empty to write none")
    return RoundSettings(nodes, least, groups, seconds, Path(output) if output else None)


def _text(config: Mapping[str, object], key: str, whose: str) -> str:
    value = config.get(key)
    if type(value) is not str or not value:
        raise ValueError(f"{whose} configuration: {key} is missing; it needs {', '.join(NODE_KEYS)}")
    return value


def _number(config: Mapping[str, object], key: str, whose: str) -> float:
    value = config.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{whose} configuration: {key} must be a finite number, not {value!r}")
    return float(value)


def _count(config: Mapping[str, object], key: str) -> int:
    value = config.get(key)
    if type(value) is not int:
        raise ValueError(f"run configuration: {key} must be a whole number, not {value!r}")
    return value
