"""Everything that a liar can send: the payloads of a question that a server counts."""

import itertools
import struct

from ldp_protocols import DocumentError
from ldp_protocols.mechanisms import NoisyVector


def possible_payloads(question):
    """All payloads that the server counts; of noisy vectors the corners."""
    mechanism = question.mechanism
    if isinstance(mechanism, NoisyVector):
        corners = itertools.product((-mechanism.bound, mechanism.bound), repeat=mechanism.domain_size)
        return [struct.pack(f"<{mechanism.domain_size}i", *corner) for corner in corners]
    payloads = []
    for number in range(1 << (8 * mechanism.width if mechanism.width < 3 else 0)):
        payload = number.to_bytes(mechanism.width, "little")
        try:
            mechanism.check(payload)
        except DocumentError:
            continue
        payloads.append(payload)
    return payloads
