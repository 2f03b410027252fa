from simulations.fidelities.simulation import FIDELITIES as FIDELITIES
from simulations.fidelities.simulation import SeededCoins as SeededCoins
from simulations.fidelities.simulation import simulate as simulate
