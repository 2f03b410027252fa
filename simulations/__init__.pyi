from simulations.fidelities import FIDELITIES as FIDELITIES
from simulations.fidelities import SeededCoins as SeededCoins
from simulations.fidelities import simulate as simulate
