"""Training where the data is: global and smooth sensitivity, sufficient statistics, federated nodes, k-means, queries.

Everything takes a table and a schema with public bounds, draws exact noise, and states what it guarantees.
"""

from ldp_aggregator.trainers.global_sensitivity import GlobalSensitivityNB
from ldp_aggregator.trainers.randomness import PrivacyWarning
from ldp_aggregator.trainers.smooth_sensitivity import SmoothSensitivityNB
from ldp_aggregator.trainers.sufficient_statistics import SufficientStatisticsNB

__all__ = ["GlobalSensitivityNB", "PrivacyWarning", "SmoothSensitivityNB", "SufficientStatisticsNB"]
