from ldp_simulations.fidelities import FIDELITIES as FIDELITIES
from ldp_simulations.fidelities import SeededCoins as SeededCoins
from ldp_simulations.fidelities import simulate as simulate
