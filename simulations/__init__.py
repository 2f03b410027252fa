"""Populations of simulated devices: what a campaign would learn, before anyone is asked."""

from simulations.coins import SeededCoins
from simulations.simulation import FIDELITIES, simulate

__all__ = ["FIDELITIES", "SeededCoins", "simulate"]
