"""The aggregator: adds reports up, estimates without bias, builds the Naive Bayes model that goes back to devices."""

from ldp_aggregator.estimates import Estimates, estimate
from ldp_aggregator.guarantee import Guarantee
from ldp_aggregator.naive_bayes import NaiveBayes
from ldp_aggregator.tally import Tally
from ldp_aggregator.training import train

__all__ = ["Estimates", "Guarantee", "NaiveBayes", "Tally", "estimate", "train"]
