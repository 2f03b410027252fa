"""What Swift's library lacks and the client brings along: whole numbers of any size, logarithms rounded up, SHA-256."""

import hashlib
import hmac
import json
import random
import subprocess
from decimal import Context, Decimal

BITS = 192
DIGITS = Context(prec=120)


def ask(swift, task, lines):
    asked = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run([*swift, task], input=asked, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def numbers(count):
    """Pairs of all lengths, near powers of two above all, where carries and borrows run through whole numbers."""
    rng = random.Random("whole numbers")
    edges = [2**bits + off for bits in (0, 1, 32, 63, 64, 65, 127, 128, 129, 192, 256, 320) for off in (-1, 0, 1)]
    for _ in range(count):
        one, other = (rng.choice([rng.choice(edges), rng.getrandbits(rng.randint(1, 400))]) for _ in range(2))
        yield max(one, other), min(one, other) or 1


def test_whole_numbers_of_any_size_are_reckoned_as_in_python(swift):
    pairs = list(numbers(3000))
    for (a, b), answer in zip(pairs, ask(swift, "arithmetic", [[str(a), str(b)] for a, b in pairs]), strict=True):
        *found, bits, zeros = answer.split()
        results = [int(number, 16) for number in found]
        assert results[:7] == [a + b, a - b, a * b, a // b, a % b, a << 77, a >> 77]
        assert int(bits) == a.bit_length()
        assert int(zeros) == ((a & -a).bit_length() - 1 if a else 0)


def test_a_logarithm_is_rounded_up_by_next_to_nothing(swift):
    pairs = [(a, b) for a, b in numbers(1000) if a]
    for (a, b), answer in zip(pairs, ask(swift, "arithmetic", [[str(a), str(b)] for a, b in pairs]), strict=True):
        found = DIGITS.divide(Decimal(int(answer.split()[7], 16)), Decimal(2**BITS))
        exact = DIGITS.ln(DIGITS.divide(Decimal(a), Decimal(b)))
        assert 0 <= DIGITS.subtract(found, exact) <= Decimal(2) ** -170


def test_sha_256_its_hmac_and_base64url_are_those_of_python(swift):
    rng = random.Random("hashes")
    messages = [rng.randbytes(size) for size in (*range(140), 1000, 65_537)]
    lines = [[(key := rng.randbytes(32)).hex(), message.hex()] for message in messages]
    for (key, message), answer in zip(lines, ask(swift, "hashes", lines), strict=True):
        key, message = bytes.fromhex(key), bytes.fromhex(message)
        assert answer.split() == [hashlib.sha256(message).hexdigest(), hmac.digest(key, message, "sha256").hex()]
