"""Training where the data is: global and smooth sensitivity, sufficient statistics, federated nodes, k-means, queries.

Everything takes a table and a schema with public bounds, draws exact noise, and states what it guarantees.
"""

from protocols.names import loaded_on_use

with loaded_on_use(globals()):
    from ldp_aggregator.counting.shares import ShareError as ShareError
    from ldp_aggregator.counting.shares import decode_distributed as decode_distributed
    from ldp_aggregator.counting.shares import decode_share as decode_share
    from ldp_aggregator.counting.shares import encode_share as encode_share
    from ldp_aggregator.trainers.federation.distributed_noise import combine as combine
    from ldp_aggregator.trainers.federation.distributed_noise import distributed_statistics as distributed_statistics
    from ldp_aggregator.trainers.federation.distributed_noise import model_of_sum as model_of_sum
    from ldp_aggregator.trainers.federation.federated import FederatedNB as FederatedNB
    from ldp_aggregator.trainers.federation.gossip import PushSumNode as PushSumNode
    from ldp_aggregator.trainers.federation.gossip import push_sum as push_sum
    from ldp_aggregator.trainers.federation.state import FederatedState as FederatedState
    from ldp_aggregator.trainers.federation.state import model_of_totals as model_of_totals
    from ldp_aggregator.trainers.federation.state import node_statistics as node_statistics
    from ldp_aggregator.trainers.global_sensitivity import GlobalSensitivityNB as GlobalSensitivityNB
    from ldp_aggregator.trainers.kmeans import PrivateKMeans as PrivateKMeans
    from ldp_aggregator.trainers.noise.accountant import Accountant as Accountant
    from ldp_aggregator.trainers.noise.accountant import BudgetError as BudgetError
    from ldp_aggregator.trainers.noise.randomness import PrivacyWarning as PrivacyWarning
    from ldp_aggregator.trainers.queries import private_count as private_count
    from ldp_aggregator.trainers.queries import private_mean as private_mean
    from ldp_aggregator.trainers.silence import SilentFeatureWarning as SilentFeatureWarning
    from ldp_aggregator.trainers.smooth_sensitivity import SmoothSensitivityNB as SmoothSensitivityNB
    from ldp_aggregator.trainers.sufficient_statistics import SufficientStatisticsNB as SufficientStatisticsNB
