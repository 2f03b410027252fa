"""Training where the data is: global and smooth sensitivity, sufficient statistics, federated nodes, k-means, queries.

Everything takes a table and a schema with public bounds, draws exact noise, and states what it guarantees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ldp_aggregator.counting.shares import ShareError, decode_distributed, decode_share, encode_share
    from ldp_aggregator.trainers.federation.distributed_noise import combine, distributed_statistics, model_of_sum
    from ldp_aggregator.trainers.federation.federated import FederatedNB
    from ldp_aggregator.trainers.federation.gossip import PushSumNode, push_sum
    from ldp_aggregator.trainers.federation.state import FederatedState, model_of_totals, node_statistics
    from ldp_aggregator.trainers.global_sensitivity import GlobalSensitivityNB
    from ldp_aggregator.trainers.kmeans import PrivateKMeans
    from ldp_aggregator.trainers.noise.accountant import Accountant, BudgetError
    from ldp_aggregator.trainers.noise.randomness import PrivacyWarning
    from ldp_aggregator.trainers.queries import private_count, private_mean
    from ldp_aggregator.trainers.silence import SilentFeatureWarning
    from ldp_aggregator.trainers.smooth_sensitivity import SmoothSensitivityNB
    from ldp_aggregator.trainers.sufficient_statistics import SufficientStatisticsNB

__all__ = [
    "Accountant",
    "BudgetError",
    "FederatedNB",
    "FederatedState",
    "GlobalSensitivityNB",
    "PrivacyWarning",
    "PrivateKMeans",
    "PushSumNode",
    "ShareError",
    "SilentFeatureWarning",
    "SmoothSensitivityNB",
    "SufficientStatisticsNB",
    "combine",
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
    "Accountant": "ldp_aggregator.trainers.noise.accountant",
    "BudgetError": "ldp_aggregator.trainers.noise.accountant",
    "FederatedNB": "ldp_aggregator.trainers.federation.federated",
    "FederatedState": "ldp_aggregator.trainers.federation.state",
    "GlobalSensitivityNB": "ldp_aggregator.trainers.global_sensitivity",
    "PrivacyWarning": "ldp_aggregator.trainers.noise.randomness",
    "PrivateKMeans": "ldp_aggregator.trainers.kmeans",
    "PushSumNode": "ldp_aggregator.trainers.federation.gossip",
    "ShareError": "ldp_aggregator.counting.shares",
    "SilentFeatureWarning": "ldp_aggregator.trainers.silence",
    "SmoothSensitivityNB": "ldp_aggregator.trainers.smooth_sensitivity",
    "SufficientStatisticsNB": "ldp_aggregator.trainers.sufficient_statistics",
    "combine": "ldp_aggregator.trainers.federation.distributed_noise",
    "decode_distributed": "ldp_aggregator.counting.shares",
    "decode_share": "ldp_aggregator.counting.shares",
    "distributed_statistics": "ldp_aggregator.trainers.federation.distributed_noise",
    "encode_share": "ldp_aggregator.counting.shares",
    "model_of_sum": "ldp_aggregator.trainers.federation.distributed_noise",
    "model_of_totals": "ldp_aggregator.trainers.federation.state",
    "node_statistics": "ldp_aggregator.trainers.federation.state",
    "private_count": "ldp_aggregator.trainers.queries",
    "private_mean": "ldp_aggregator.trainers.queries",
    "push_sum": "ldp_aggregator.trainers.federation.gossip",
}
"""Imported on first use: a server checks the shares of nodes, and needs none of the estimators' libraries for it."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
