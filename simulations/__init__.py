"""Populations of simulated devices: what a campaign would learn, before anyone is asked."""

from simulations.fidelities.coins import SeededCoins
from simulations.fidelities.simulation import FIDELITIES, simulate

__all__ = ["FIDELITIES", "SeededCoins", "simulate"]
