"""Runs one mechanism of another library many times on two inputs; a program of its own, in an environment that has it.

    python sampling.py CASE TRIALS OUTPUT.npz

writes, for both inputs, the outputs as rows of bytes, and prints one JSON object: what is claimed, by which version.
Nothing of ldp-bayes is imported here.
"""

from __future__ import annotations

import json
import math
import platform
import sys
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

EPSILON = 1.0
DELTA = 1e-5
CELLS = 8

Sampler = Callable[[Any], bytes]


@dataclass(frozen=True)
class Claim:
    """What a library says of a mechanism, and the two inputs that it is held to."""

    library: str
    version: str
    mechanism: str
    epsilon: float
    delta: float
    inputs: str


def _claim(library: str, mechanism: str, inputs: str, epsilon: float = EPSILON, delta: float = 0.0) -> Claim:
    return Claim(library, version(library), mechanism, epsilon, delta, inputs)


VALUES = (0, 1)
"""Two values of a domain of CELLS."""

VALUES_TEXT = f"values 0 and 1 of {CELLS}"


def _integers(values: Any) -> bytes:
    return np.atleast_1d(np.asarray(values)).astype("<i4").tobytes()


def _bits(values: Any) -> bytes:
    return np.asarray(values).astype(np.uint8).tobytes()


def _doubles(*values: Any) -> bytes:
    return b"".join(np.asarray(value, dtype="<f8").tobytes() for value in values)


def pure_ldp(name: str) -> tuple[Claim, Sampler, tuple[Any, Any]]:
    import pure_ldp.frequency_oracles as oracles

    def same(value: int) -> int:
        return value

    def first_hash(_: str) -> int:
        return int(_) % CELLS

    if name == "rappor":
        # f is computed by the library; one hash function, told as loss by the library's own conversion.
        helper = oracles.RAPPORClient(0.5, CELLS, [[first_hash]], num_of_cohorts=1, index_mapper=same)
        f = helper.convert_eps_to_f(EPSILON)
        client = oracles.RAPPORClient(f, CELLS, [[first_hash]], num_of_cohorts=1, index_mapper=same)
        claim = _claim(
            "pure-ldp",
            f"RAPPORClient, f = {f}, one hash function",
            VALUES_TEXT,
            client.convert_f_to_eps(f, 1),
        )
        return claim, lambda value: _bits(client.privatise(value)[0]), VALUES
    makers: dict[str, tuple[str, Callable[[], Any], Callable[[Any], bytes]]] = {
        "de": ("DEClient", lambda: oracles.DEClient(EPSILON, CELLS, index_mapper=same), _integers),
        "sue": ("UEClient", lambda: oracles.UEClient(EPSILON, CELLS, index_mapper=same), _bits),
        "oue": ("UEClient, use_oue", lambda: oracles.UEClient(EPSILON, CELLS, True, index_mapper=same), _bits),
        "he": ("HEClient", lambda: oracles.HEClient(EPSILON, CELLS, index_mapper=same), _doubles),
    }
    label, make, encode = makers[name]
    client = make()
    return _claim("pure-ldp", label, VALUES_TEXT), lambda value: encode(client.privatise(value)), VALUES


def multi_freq(name: str) -> tuple[Claim, Sampler, tuple[Any, Any]]:
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client
    from multi_freq_ldpy.pure_frequency_oracles.HE import HE_Client
    from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client

    def members(value: int) -> bytes:
        shown = np.zeros(CELLS, dtype=np.uint8)
        shown[np.asarray(SS_Client(value, CELLS, EPSILON)).astype(int)] = 1
        return shown.tobytes()

    def ordered(value: int) -> bytes:
        return _integers(SS_Client(value, CELLS, EPSILON))

    samplers: dict[str, tuple[str, Sampler]] = {
        "grr": ("GRR_Client", lambda value: _integers(GRR_Client(value, CELLS, EPSILON))),
        "sue": ("UE_Client, optimal=False", lambda value: _bits(UE_Client(value, CELLS, EPSILON, False))),
        "oue": ("UE_Client, optimal=True", lambda value: _bits(UE_Client(value, CELLS, EPSILON, True))),
        "he": ("HE_Client", lambda value: _doubles(HE_Client(value, CELLS, EPSILON))),
        "ss": ("SS_Client, as a set", members),
        "ss-order": ("SS_Client, as the list that it returns", ordered),
    }
    label, sampler = samplers[name]
    return _claim("multi-freq-ldpy", label, VALUES_TEXT), sampler, VALUES


def opendp(name: str) -> tuple[Claim, Sampler, tuple[Any, Any]]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    if name == "response":
        probability = math.exp(EPSILON) / (math.exp(EPSILON) + CELLS - 1)
        measurement = dp.m.make_randomized_response(list(range(CELLS)), prob=probability)
        claim = _claim("opendp", "make_randomized_response", VALUES_TEXT, measurement.map(1))
        return claim, lambda value: _integers(measurement(value)), VALUES
    f = 2 / (1 + math.exp(EPSILON / 2))
    measurement = dp.m.make_randomized_response_bitvec(dp.bitvector_domain(max_weight=1), dp.discrete_distance(), f=f)
    claim = _claim(
        "opendp",
        f"make_randomized_response_bitvec, weight 1, f = {f:.4f}",
        "bit vectors 00000001 and 00000010",
        measurement.map(1),
    )
    return claim, lambda value: bytes(measurement(bytes([value]))), (1, 2)


def diffprivlib(name: str) -> tuple[Claim, Sampler, tuple[Any, Any]]:
    from diffprivlib.models import GaussianNB

    rows = np.array([[0.1 * step, 1 - 0.1 * step] for step in range(10)])
    labels = np.array([0, 1] * 5)
    moved, relabelled = rows.copy(), labels.copy()
    moved[0], relabelled[0] = (1.0, 0.0), 1
    pairs: dict[str, tuple[str, tuple[Any, Any]]] = {
        "moved": ("10 rows, the numbers of one row replaced", ((rows, labels), (moved, labels))),
        "relabelled": ("10 rows, the class of one row replaced", ((rows, labels), (rows, relabelled))),
        "removed": ("10 rows, and the first left out", ((rows, labels), (rows[1:], labels[1:]))),
    }
    text, inputs = pairs[name]

    def sampler(table: tuple[Any, Any]) -> bytes:
        model = GaussianNB(epsilon=EPSILON, bounds=(np.zeros(2), np.ones(2)), priors=None)
        model.fit(*table)
        shape = {0: 0, 1: 1}
        # A class may get a noisy count of nothing; what is not there is zero.
        theta, var, count = np.zeros((2, 2)), np.zeros((2, 2)), np.zeros(2)
        for place, label in enumerate(model.classes_):
            theta[shape[int(label)]] = model.theta_[place]
            var[shape[int(label)]] = model.var_[place]
            count[shape[int(label)]] = model.class_count_[place]
        return _doubles(theta.ravel(), var.ravel(), count)

    return _claim("diffprivlib", "GaussianNB", text), sampler, inputs


def flower(_: str) -> tuple[Claim, Sampler, tuple[Any, Any]]:
    from flwr.app import Context, Message, RecordDict
    from flwr.client.mod import LocalDpMod
    from flwr.common import Code, FitIns, FitRes, Status, ndarrays_to_parameters, parameters_to_ndarrays
    from flwr.compat.common import recorddict_compat as compat
    from flwr.supercore.task_identity import TaskIdentity

    # A message knows the run that it belongs to; here there is none.
    TaskIdentity.task_id = TaskIdentity.run_id = TaskIdentity.node_id = 1
    norm = 0.5
    mod = LocalDpMod(clipping_norm=norm, sensitivity=2 * norm, epsilon=EPSILON, delta=DELTA)
    sent = [np.zeros(4)]
    content = compat.fitins_to_recorddict(FitIns(ndarrays_to_parameters(sent), {}), keep_input=True)
    context = Context(run_id=1, node_id=1, node_config={}, state=RecordDict(), run_config={})

    def sampler(update: Any) -> bytes:
        def answer(message: Any, _: Any) -> Any:
            result = FitRes(Status(Code.OK, ""), ndarrays_to_parameters([np.array(update)]), 1, {})
            return Message(compat.fitres_to_recorddict(result, keep_input=True), reply_to=message)

        message = Message(content, dst_node_id=1, message_type="train")
        told = compat.recorddict_to_fitres(mod(message, context, answer).content, keep_input=True)
        return _doubles(*parameters_to_ndarrays(told.parameters))

    claim = _claim(
        "flwr",
        "client.mod.LocalDpMod, clipping norm 0.5, sensitivity 1",
        "updates +0.5 and -0.5 along the first of 4 weights",
        delta=DELTA,
    )
    return claim, sampler, ([norm, 0.0, 0.0, 0.0], [-norm, 0.0, 0.0, 0.0])


CASES: dict[str, tuple[Callable[[str], tuple[Claim, Sampler, tuple[Any, Any]]], str]] = {
    **{f"pure-ldp-{name}": (pure_ldp, name) for name in ("de", "sue", "oue", "he", "rappor")},
    **{f"multi-freq-{name}": (multi_freq, name) for name in ("grr", "sue", "oue", "he", "ss", "ss-order")},
    **{f"opendp-{name}": (opendp, name) for name in ("response", "bitvec")},
    **{f"diffprivlib-{name}": (diffprivlib, name) for name in ("moved", "relabelled", "removed")},
    "flower-local-dp": (flower, ""),
}


def main(case: str, trials: int, output: str) -> None:
    """Sample, write, and say what was claimed."""
    warnings.simplefilter("ignore")
    maker, name = CASES[case]
    claim, sampler, inputs = maker(name)
    rows = [np.frombuffer(b"".join(sampler(value) for _ in range(trials)), np.uint8) for value in inputs]
    np.savez(output, one=rows[0].reshape(trials, -1), other=rows[1].reshape(trials, -1))
    print(json.dumps(asdict(claim) | {"python": platform.python_version(), "numpy": np.__version__}))


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1] == "cases":
        print(json.dumps(list(CASES)))
    else:
        main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
