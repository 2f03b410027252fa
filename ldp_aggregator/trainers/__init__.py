"""Training where the data is: global and smooth sensitivity, sufficient statistics, federated nodes, k-means, queries.

Everything takes a table and a schema with public bounds, draws exact noise, and states what it guarantees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ldp_aggregator.trainers.distributed_noise import distributed_statistics, model_of_sum
    from ldp_aggregator.trainers.federated import FederatedNB
    from ldp_aggregator.trainers.federation import FederatedState, model_of_totals, node_statistics
    from ldp_aggregator.trainers.global_sensitivity import GlobalSensitivityNB
    from ldp_aggregator.trainers.gossip import PushSumNode, push_sum
    from ldp_aggregator.trainers.kmeans import PrivateKMeans
    from ldp_aggregator.trainers.queries import private_count, private_mean
    from ldp_aggregator.trainers.randomness import PrivacyWarning
    from ldp_aggregator.trainers.shares import ShareError, decode_distributed, decode_share, encode_share
    from ldp_aggregator.trainers.smooth_sensitivity import SmoothSensitivityNB
    from ldp_aggregator.trainers.sufficient_statistics import SufficientStatisticsNB

__all__ = [
    "FederatedNB",
    "FederatedState",
    "GlobalSensitivityNB",
    "PrivacyWarning",
    "PrivateKMeans",
    "PushSumNode",
    "ShareError",
    "SmoothSensitivityNB",
    "SufficientStatisticsNB",
    "decode_distributed",
    "decode_share",
    "distributed_statistics",
    "encode_share",
    "model_of_sum",
    "model_of_totals",
    "node_statistics",
    "private_count",
    "private_mean",
    "push_sum",
]

_HOMES: Final = {
    "FederatedNB": "federated",
    "FederatedState": "federation",
    "GlobalSensitivityNB": "global_sensitivity",
    "PrivacyWarning": "randomness",
    "PrivateKMeans": "kmeans",
    "PushSumNode": "gossip",
    "ShareError": "shares",
    "SmoothSensitivityNB": "smooth_sensitivity",
    "SufficientStatisticsNB": "sufficient_statistics",
    "decode_distributed": "shares",
    "decode_share": "shares",
    "distributed_statistics": "distributed_noise",
    "encode_share": "shares",
    "model_of_sum": "distributed_noise",
    "model_of_totals": "federation",
    "node_statistics": "federation",
    "private_count": "queries",
    "private_mean": "queries",
    "push_sum": "gossip",
}
"""Imported on first use: a server checks the shares of nodes, and needs none of the estimators' libraries for it."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
