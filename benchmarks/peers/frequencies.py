"""Frequencies of several attributes by other libraries, for benchmarks/shares.py: run where they are installed.

    python benchmarks/peers/frequencies.py RECORDS.npy EPSILON SEED

Prints JSON: the way to the estimated shares of every attribute. Each spends EPSILON on a device in all: sampling one
attribute (SMP) all of it on that, splitting (SPL) a part on each. Sampling with fake data (RS+FD) is given the epsilon
with which records that differ in every attribute lose so much: its authors' amplification is undone. (pure-ldp's local
hashing fails with today's xxhash, and is left out.)
"""

import json
import math
import random
import sys

import numpy as np
from multi_freq_ldpy.mdim_freq_est import RSpFD_solution as fake
from multi_freq_ldpy.mdim_freq_est import SMP_solution as smp
from multi_freq_ldpy.mdim_freq_est import SPL_solution as spl
from pure_ldp.frequency_oracles import DEClient, DEServer, UEClient, UEServer

PURE = {
    "pure-ldp DE": (DEClient, DEServer, {}),
    "pure-ldp OUE": (UEClient, UEServer, {"use_oue": True}),
    "pure-ldp SUE": (UEClient, UEServer, {}),
}


def multi_freq(records, sizes, epsilon):
    """What multi-freq-ldpy says; its estimates are cut at 0 and made to add up to 1."""
    d = len(sizes)
    ways = {
        "SMP[GRR]": (smp.SMP_GRR_Client, smp.SMP_GRR_Aggregator_MI, (sizes, d), epsilon),
        "SMP[SS]": (smp.SMP_SS_Client, smp.SMP_SS_Aggregator_MI, (sizes, d), epsilon),
        "SMP[OUE]": (smp.SMP_UE_Client, smp.SMP_UE_Aggregator_MI, (d,), epsilon),
        "SMP[ADP]": (smp.SMP_ADP_Client, smp.SMP_ADP_Aggregator_MI, (sizes, d), epsilon),
        "SPL[ADP]": (spl.SPL_ADP_Client, spl.SPL_ADP_Aggregator_MI, (sizes, d), epsilon),
        "RS+FD[GRR]": (fake.RSpFD_GRR_Client, fake.RSpFD_GRR_Aggregator_MI, (sizes, d), _undone(epsilon, d)),
        "RS+FD[ADP]": (fake.RSpFD_ADP_Client, fake.RSpFD_ADP_Aggregator_MI, (sizes, d), _undone(epsilon, d)),
    }
    for name, (client, aggregate, told, each) in ways.items():
        reports = [client(record, sizes, d, each) for record in records]
        yield f"multi-freq-ldpy {name}", [[float(f) for f in one] for one in aggregate(reports, *told, each)]


def _undone(epsilon, d):
    return math.log((math.exp(epsilon) - 1) / d + 1)


def pure(records, sizes, epsilon):
    """What pure-ldp says, of one attribute of each device that a lot draws; its estimates are as they come."""
    drawn = np.random.randint(len(sizes), size=len(records))
    for name, (client_of, server_of, how) in PURE.items():
        found = []
        for place, size in enumerate(sizes):
            client, server = (of(epsilon, size, index_mapper=lambda x: x, **how) for of in (client_of, server_of))
            mine = [record[place] for record in records[drawn == place].tolist()]
            for value in mine:
                server.aggregate(client.privatise(value))
            found.append([float(server.estimate(value)) / len(mine) for value in range(size)])
        yield name, found


if __name__ == "__main__":
    table, total, seed = np.load(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    np.random.seed(seed)
    random.seed(seed)
    domains = [int(column.max()) + 1 for column in table.T]
    print(json.dumps(dict([*multi_freq(table, domains, total), *pure(table, domains, total)])))
