"""Populations of simulated devices: what a campaign would learn, before anyone is asked."""

from protocols.names import loaded_on_use

with loaded_on_use(globals()):
    from simulations.fidelities.coins import SeededCoins as SeededCoins
    from simulations.fidelities.simulation import FIDELITIES as FIDELITIES
    from simulations.fidelities.simulation import simulate as simulate
