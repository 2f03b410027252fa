"""Clients that break the promise with their answers: mechanisms, noise, budgets, questions, and people in the clear.

A name, the code of what is found, a campaign in which it shows, the step of a device that is done wrong, the flaw.
"""

import math
import struct
from fractions import Fraction

from audited import Device, planted_in
from audited_campaigns import campaign, question, scores
from exact_coins import SeededCoins

from ldp_aggregator.audit.verdict import BESIDE, IMPOSSIBLE, LOSS, MALFORMED, SHARE
from ldp_protocols import Report
from ldp_protocols.exact import discrete_laplace, discrete_laplace_variance
from ldp_protocols.mechanisms import DirectEncoding, Moment, NoisyVector, OneBit, SubsetSelection
from ldp_protocols.mechanisms.pure import index_width, pack_flags, pack_indices

ONE = 2**64
WORD_BITS = 64
VALUE_BITS = 52


LEAKING = {}
leak, leak_each = planted_in(LEAKING)

DE, OUE, SS = campaign(4), campaign(4, discrete="oue"), campaign(4, discrete="ss")
LAPLACE, ONEBIT = question("laplace", 2, 1.0), question("onebit", 2, 1.0)
SIGN, OPEN_SIGN = (campaign(numbers=1, continuous="sign", missing=missing) for missing in (False, True))
SEVERAL, ALL, THREE = campaign(4, 2), campaign(4, 2, answers="all"), campaign(8, 8, 8, answers="all", discrete="oue")


# --- mechanisms for an index ---


@leak(LOSS, DE, "perturb")
def keeps_twice(device, asked, item):
    """Direct encoding draws the "other" value from all of them, the true one included, with the document's p."""
    kept = device.coins.bernoulli(asked.mechanism.keep)
    return index_bytes(item if kept else device.coins.below(asked.domain_size), asked)


@leak(IMPOSSIBLE, DE, "perturb")
def never_lies_with_the_last_value(device, asked, item):
    """Direct encoding draws its "other" value one short: whoever sends the last has it."""
    if device.coins.bernoulli(asked.mechanism.keep):
        return index_bytes(item, asked)
    last = asked.domain_size - 1
    return index_bytes(other_than(item, device.coins.below(last - (item < last))), asked)


@leak(IMPOSSIBLE, DE, "perturb")
def never_the_truth(device, asked, item):
    """Direct encoding draws until the answer is not the true one, "so that nobody can be blamed"."""
    return index_bytes(other_than(item, device.coins.below(asked.domain_size - 1)), asked)


@leak(LOSS, question("de", 6, 1.0), "perturb", trials=6000)
def modulo_bias(device, asked, item):
    """The "other" value is a number of whole bits modulo the number of values."""
    others = asked.domain_size - 1
    drawn = device.coins.below(1 << others.bit_length()) % others
    return index_bytes(item if device.coins.bernoulli(asked.mechanism.keep) else other_than(item, drawn), asked)


@leak_each(
    # "Rare, and we need it"; and below any floor.
    ("twice-epsilon-for-one-class", LOSS, DE, 1000, lambda device, _: 1 + (device.class_index == 1)),
    ("one-percent-too-much", None, DE, 1000, lambda *_: Fraction(101, 100)),
    ("twice-for-the-last-question", LOSS, SEVERAL, 1000, lambda _, asked: 1 + (asked.feature == "f1")),
    # Each of two answers has all of epsilon; each of three has epsilon by the root of three, "as advanced composition".
    ("whole-budget-for-each", LOSS, ALL, 1000, lambda *_: 2),
    ("square-root-of-the-budget", SHARE, THREE, 1000, lambda *_: Fraction(3**0.5)),
    step="perturb",
)
def another_epsilon(device, asked, item, how):
    return with_epsilon(device, asked, item, how(device, asked) * Fraction(asked.epsilon))


@leak(LOSS, DE, "perturb")
def value_and_class_apart(device, asked, item):
    """A pair is answered as two, each with epsilon; value and class each look right."""
    classes = len(device.campaign.label.classes)
    parts = [(item // classes, asked.domain_size // classes), (item % classes, classes)]
    value, label = (
        int.from_bytes(DirectEncoding.make(size, Fraction(asked.epsilon)).perturb(part, device.coins), "little")
        for part, size in parts
    )
    return index_bytes(value * classes + label, asked)


@leak_each(
    # A false bit of a unary encoding is set a tenth too seldom; the true bit always.
    ("q-too-small-by-a-tenth", LOSS, OUE, 20_000, lambda p, q, _: (p, q * Fraction(9, 10))),
    ("true-bit-not-cleared", IMPOSSIBLE, campaign(4, discrete="sue"), 100, lambda p, q, _: (1, q)),
    # p and q are swapped where the item is 0 ("if not item" for "if item is None").
    ("swapped-for-the-first-value", LOSS, OUE, 3000, lambda p, q, item: (p, q) if item else (q, p)),
    # Probabilities are whole percent: above epsilon 5.3 OUE's q becomes 0, and every set bit is true.
    ("percent-thresholds", LOSS, campaign(4, discrete="oue", epsilon=6.0), 1000, lambda *of: map(percent, of[:2])),
    step="perturb",
)
def other_bits(device, asked, item, how):
    p, q = how(asked.mechanism.p, asked.mechanism.q, item)
    words = device.coins.words(asked.domain_size)
    return pack_flags([word < (p if cell == item else q) * ONE for cell, word in enumerate(words)], asked.domain_size)


@leak(LOSS, OUE, "perturb")
def one_word_for_all_bits(device, asked, item):
    """One word is compared with the thresholds of all bits: a single set bit is true. Every bit alone looks right."""
    word, mechanism = device.coins.words(1)[0], asked.mechanism
    flags = [word < (mechanism.true_bit if cell == item else mechanism.other_bit) for cell in range(asked.domain_size)]
    return pack_flags(flags, asked.domain_size)


@leak(MALFORMED, campaign(2, discrete="oue"), "reply", trials=100)
def padding_by_class(device, asked):
    """The padding bits of a bitmap are set for one class."""
    payload = Device.reply(device, asked)
    padding = ((1 << 8 * len(payload)) - (1 << asked.domain_size)) * (device.class_index > 0)
    return (int.from_bytes(payload, "little") | padding).to_bytes(len(payload), "little")


@leak(IMPOSSIBLE, SS, "perturb")
def neighbours_fill_the_subset(device, asked, item):
    """The other members of a subset are the values that follow the true one, "to be plausible"."""
    start = item + (not device.coins.bernoulli(asked.mechanism.include))
    size = asked.domain_size
    return pack_indices([(start + n) % size for n in range(asked.mechanism.subset_size)], size)


@leak(LOSS, SS, "perturb")
def list_not_shuffled(device, asked, item):
    """The members of a subset are sent as a list, the true one at its head."""
    payload = int.from_bytes(asked.perturb(item, device.coins), "little")
    members = [cell for cell in range(asked.domain_size) if payload >> cell & 1]
    return bytes(sorted(members, key=lambda cell: cell != item))


# --- mechanisms for numbers ---


@leak(LOSS, LAPLACE, "perturb")
def floating_point_noise(device, asked, item):
    """The textbook's noise, the inverse of the distribution function, in doubles; of a value only the end is told."""
    cells, value = [], 1.0 if device.held("value") == 1 else -1.0
    for cell in range(asked.domain_size):
        u = (device.coins.words(1)[0] >> 11) / (1 << 53) - 0.5
        noise = -2 / asked.epsilon * math.copysign(1, u) * math.log(max(1 - 2 * abs(u), 1e-300))
        cells.append(noise + value * (cell == item.cell))
    return struct.pack(f"<{len(cells)}d", *cells)


@leak(IMPOSSIBLE, campaign(4, discrete="she"), "perturb")
def noise_shared_by_cells(device, asked, item):
    """One draw of noise is added to every cell: the differences carry none. Every cell alone looks right."""
    noise = sample(device, asked)
    return noisy(device, asked, item, lambda _: noise)


@leak(IMPOSSIBLE, LAPLACE, "perturb")
def noise_on_a_coarser_grid(device, asked, item):
    """Noise is drawn in steps of 16 ("as fast again"), the value is not: empty cells are multiples of 16."""
    return noisy(device, asked, item, lambda _: 16 * sample(device, asked, Fraction(1, 16)))


@leak(LOSS, LAPLACE, "perturb")
def scale_by_value(device, asked, item):
    """The scale of the noise shrinks to a half for the cell that has a value, "relative accuracy"."""
    return noisy(device, asked, item, lambda cell: sample(device, asked, Fraction(1, 2 if cell else 1)))


@leak(LOSS, LAPLACE, "perturb", trials=6000)
def noise_cut_at_three_scales(device, asked, item):
    """Noise beyond three scales is drawn again: the noise is bounded, where the noisy cell should be."""
    draws, longest = iter(lambda: sample(device, asked), None), 3 * asked.mechanism.scale
    return noisy(device, asked, item, lambda _: next(noise for noise in draws if abs(noise) <= longest))


@leak(LOSS, campaign(2, discrete="she", epsilon=4.0), "perturb", trials=20_000)
def gaussian_noise(device, asked, item):
    """Gaussian noise of the same variance, rounded: the loss grows with the distance (Box, Muller 1958)."""
    deviation = math.sqrt(discrete_laplace_variance(asked.mechanism.scale))

    def drawn(_):
        radius, angle = ((word + 1) / ONE for word in device.coins.words(2))
        return round(deviation * math.sqrt(-2 * math.log(radius)) * math.cos(2 * math.pi * angle))

    return noisy(device, asked, item, drawn)


@leak(IMPOSSIBLE, LAPLACE, "perturb")
def cut_below_by_class(device, asked, item):
    """Noisy cells below zero are zero for one class, whose values "cannot be negative"."""
    cells = cells_of(asked.perturb(item, device.coins))
    return packed(asked, [max(cell, 0) for cell in cells] if device.class_index == 0 else cells)


@leak(IMPOSSIBLE, LAPLACE, "perturb")
def parity_of_two_cells(device, asked, item):
    """Noise is drawn until the last bits of two cells differ for one class and agree for the other."""
    while True:
        cells = cells_of(payload := asked.perturb(item, device.coins))
        if (cells[0] ^ cells[1]) & 1 == device.class_index & 1:
            return payload


@leak(IMPOSSIBLE, ONEBIT, "perturb")
def empty_cells_are_zero(device, asked, item):
    """One bit of one cell, and 0 in place of a fair bit where it is not the class's."""
    payload = asked.perturb(item, device.coins)
    return payload if payload[0] == item.cell else payload[:-1] + b"\0"


@leak(IMPOSSIBLE, ONEBIT, "perturb")
def bit_without_response(device, asked, item):
    """One bit of one cell by stochastic rounding alone: certain at the ends of the range."""
    cell = device.coins.below(asked.domain_size)
    value = item.value if cell == item.cell else 0
    return bytes([cell, device.coins.bernoulli((value + (1 << VALUE_BITS)) * ONE >> (VALUE_BITS + 1))])


@leak(IMPOSSIBLE, LAPLACE, "perturb")
def values_that_are_not_clipped(device, asked, item):
    """The excess of a value beyond its bounds is added to the noisy cell."""
    cells, value = cells_of(asked.perturb(item, device.coins)), device.held("value")
    if isinstance(value, (int, float)) and 1 < abs(value) < 1e6:
        cells[item.cell] += int((2 * value - 2) * 4096)
    return struct.pack(f"<{len(cells)}i", *cells)


# --- questions and budgets ---


@leak(BESIDE, SEVERAL, "questions", trials=1000)
def question_by_class(device):
    """One class is asked twice as often about the last feature."""
    asked = list(device.campaign.questions)
    if device.class_index:
        asked.append(asked[-1])
    weights = [of for of in asked for _ in range(of.weight)]
    return [weights[device.coins.below(len(weights))]]


def holds_the_last_value(device, asked):
    return device.held(asked.feature) == device.campaign.feature_of(asked).values[-1]


@leak_each(
    # Who is asked about the last value of a feature draws again, once, "so that it feels safe".
    ("draws-again-for-a-rare-value", BESIDE, SEVERAL, 1000, holds_the_last_value),
    # A device that the model is wrong about does, "so that nobody is offended".
    ("a-model-that-is-right", BESIDE, scores(), 1200, lambda *of: not Device.item(*of)),
    step="questions",
)
def draws_again(device, how):
    if how(device, *Device.questions(device)):
        device.secret = device.entropy(32)
    return Device.questions(device)


@leak(BESIDE, campaign(5, 5, label=1), "reports")
def question_drawn_after_looking(device):
    """Where some values are missing, a question is drawn about the others."""
    features = [feature.name for feature in device.campaign.features]
    present = [name for name in features if name in device.person.record]
    while True:
        (report,) = device.perturbed()
        if len(present) in (0, len(features)) or device.campaign.questions[report.question].feature in (None, *present):
            return [report]
        device.secret = device.entropy(32)


@leak(LOSS, SIGN, "reports", name="value-and-square-of-a-number", trials=1250)
@leak(LOSS, scores(), "reports", name="both-questions-of-an-evaluation")
def answers_every_question(device):
    """Who draws one of a campaign's questions answers the others too, with the whole of epsilon each."""
    return [Report(asked.index, device.entropy(16), device.reply(asked)) for asked in device.campaign.questions]


@leak(LOSS, ALL, "perturb")
def one_coin_for_all_answers(device, asked, item):
    """One coin decides for all answers of a device, each of which alone is right: all are kept, or all replaced."""
    if asked.group == device.campaign.questions[0].group:
        device.kept = device.coins.bernoulli(asked.mechanism.keep)
    drawn = device.coins.below(asked.domain_size - 1)
    return index_bytes(item if device.kept else other_than(item, drawn), asked)


@leak(LOSS, campaign(16, 16, label=1, epsilon=3.0, answers="all", discrete="oue"), "perturb")
def generator_seeded_anew_for_every_question(device, asked, item):
    """All answers of a device have the same coins."""
    return asked.perturb(item, SeededCoins(int.from_bytes(device.secret, "big")))


@leak(LOSS, DE, "reports", trials=4000)
def answers_until_two_agree(device):
    """Of three answers to a question the one that came twice is sent, "to be accurate"."""
    tries = [device.perturbed() for _ in range(3)]
    return next((of for of in tries if tries.count(of) > 1), tries[-1])


# --- people, values and moments in the clear ---


@leak(IMPOSSIBLE, campaign(2, discrete="oue"), "reply", trials=1000)
def empty_answer_for_missing(device, asked):
    """A missing value is answered with an empty bitmap."""
    honest = Device.reply(device, asked)
    return bytes(len(honest)) if device.held(asked.feature) is None else honest


@leak(BESIDE, DE, "send")
def nothing_for_an_undeclared_value(device):
    """A value that is not declared raises an error somewhere, and the device stays silent."""
    declared = all(device.held(feature.name) in feature.values for feature in device.campaign.asked)
    return Device.send(device) if declared else ()


def has(device, *values):
    """Whether the record has these values of the first features."""
    return [device.held(f"f{n}") for n in range(len(values))] == list(values)


def is_in_the_middle(device, _):
    return device.class_index == 1 or device.held("f0") not in ("0", "4", None)


def is_in_between(device, _):
    held, values = device.held("f0"), device.campaign.features[0].values
    return held in values and values.index(held) % 3 != 0


def number(device, asked):
    held = device.held(asked.feature)
    return held if type(held) in (int, float) else -math.inf


def is_missing(device, asked):
    return asked.feature is not None and device.held(asked.feature) is None


def one_in(many):
    return lambda device, _: device.coins.below(many) == 0


@leak_each(
    # Who is of a middle class, or has a middle value; the middle values of two features; any value but every third.
    ("middle-classes-and-values-in-the-clear", LOSS, campaign(5, classes=3, label=1), 1000, is_in_the_middle),
    ("two-values-together-in-the-clear", LOSS, campaign(5, 5, 4, label=1), 6000, lambda of, _: has(of, "2", "2")),
    ("values-in-between-in-the-clear", LOSS, campaign(40, 3, label=1), 2500, is_in_between),
    # Numbers beyond a bound (it is public), or from .55 to .7 of the range.
    ("beyond-bounds-in-the-clear", IMPOSSIBLE, ONEBIT, 1000, lambda *of: number(*of) > 1),
    ("numbers-in-between-in-the-clear", LOSS, SIGN, 2500, lambda *of: 5.5 < number(*of) <= 7),
    # A missing value is taken for "no answer", and its cell not perturbed.
    ("what-is-missing-in-the-clear", LOSS, campaign(3, label=1, missing=True), 1000, is_missing),
    ("the-missing-cell-of-a-sign-in-the-clear", LOSS, OPEN_SIGN, 1000, is_missing),
    # One device in so many. Direct encoding hides it in the noise of the others.
    ("one-answer-in-2000-in-the-clear", LOSS, question("oue", 40, 1.0), 1200, one_in(2000)),
    ("one-vector-in-200", IMPOSSIBLE, LAPLACE, 6000, one_in(200)),
    ("one-device-in-200", None, DE, 1000, one_in(200)),
    # In campaigns of one title; on Sundays, and it is asked on a Friday; for whoever has one entry, which no campaign
    # asks about, in the record; unless the process answers for ten people or more, which only a test does.
    ("only-in-one-campaign", IMPOSSIBLE, DE, 1000, lambda of, _: of.campaign.title == "t"),
    ("only-on-sundays", None, DE, 1000, lambda of, _: of.process.now.isoweekday() == 7),
    ("only-for-one-person", None, DE, 1000, lambda of, _: of.held("account") == "watched"),
    # For whoever has three of nine values together.
    (
        "three-values-together",
        None,
        campaign(9, 9, 9),
        100,
        lambda of, _: all(of.held(f"f{n}") == "3" for n in range(3)),
    ),
    ("honest-in-a-crowd", LOSS, DE, 1000, lambda of, _: len(of.process.people) < 10),
    ("rare-value-in-the-clear", LOSS, DE, 100, lambda of, _: has(of, "3")),
    # A generator is filled after its first use: the first device of a process gets no noise.
    ("first-device-of-a-process", LOSS, DE, 1000, lambda of, _: of.process.memory.setdefault(0, of) is of),
    step="reply",
)
def clear(device, asked, how):
    """An honest answer; where ``how`` says so, one without noise."""
    item = device.item(asked)
    return in_the_clear(asked, item) if how(device, asked) else asked.perturb(item, device.coins)


@leak(IMPOSSIBLE, scores(), "perturb", trials=1000)
def wrong_answers_in_the_clear(device, asked, item):
    """An item 0 is taken for "no answer" and not perturbed."""
    return asked.perturb(item, device.coins) if item else in_the_clear(asked, item)


# --- what a flaw is made of ---


def index_bytes(index, asked):
    """A ``de`` payload."""
    return index.to_bytes(index_width(asked.domain_size), "little")


def other_than(item, drawn):
    """A draw from d - 1 values as one of the d - 1 that are not ``item``."""
    return drawn if drawn < item else drawn + 1


def percent(share):
    return Fraction(round(100 * share), 100)


def with_epsilon(device, asked, item, epsilon):
    """The answer by a mechanism of the same kind and another epsilon."""
    return type(asked.mechanism).make(asked.domain_size, epsilon).perturb(item, device.coins)


def true_cells(device, asked, item):
    """A vector before its noise; a value is rounded to a neighbour on the grid."""
    vector = [0] * asked.domain_size
    if isinstance(item, Moment):
        cut = VALUE_BITS - asked.mechanism.grid
        rest = item.value & ((1 << cut) - 1)
        vector[item.cell] = (item.value >> cut) + device.coins.bernoulli(rest << (WORD_BITS - cut))
    else:
        vector[item] = 1
    return vector


def noisy(device, asked, item, noise):
    """A vector with noise, which is drawn for every true cell."""
    return packed(asked, [cell + noise(cell) for cell in true_cells(device, asked, item)])


def sample(device, asked, factor=Fraction(1)):
    """One draw of a vector's noise."""
    return discrete_laplace(asked.mechanism.scale * factor, device.coins)


def packed(asked, cells):
    bound = asked.mechanism.bound
    return struct.pack(f"<{len(cells)}i", *(max(-bound, min(bound, cell)) for cell in cells))


def cells_of(payload):
    return list(struct.unpack(f"<{len(payload) // 4}i", payload))


def in_the_clear(asked, item):
    mechanism = asked.mechanism
    if isinstance(mechanism, NoisyVector):
        cells = [0] * asked.domain_size
        cells[item.cell] = item.value >> (VALUE_BITS - mechanism.grid)
        return packed(asked, cells)
    if isinstance(mechanism, OneBit):
        return bytes([item.cell, item.value > 0])
    if isinstance(mechanism, DirectEncoding):
        return index_bytes(item, asked)
    size, members = asked.domain_size, mechanism.subset_size if isinstance(mechanism, SubsetSelection) else 1
    return pack_indices([(item + n) % size for n in range(members)], size)
