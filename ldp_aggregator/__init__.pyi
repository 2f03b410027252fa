from ldp_aggregator.counting.tally import Tally as Tally
from ldp_aggregator.estimation.estimates import Estimates as Estimates
from ldp_aggregator.estimation.estimates import estimate as estimate
from ldp_aggregator.guarantees import Guarantee as Guarantee
from ldp_aggregator.learning.naive_bayes import NaiveBayes as NaiveBayes
from ldp_aggregator.learning.training import train as train
