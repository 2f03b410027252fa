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
from protocols import Report
from protocols.exact import ONE, WORD_BITS, discrete_laplace, discrete_laplace_variance
from protocols.mechanisms import VALUE_BITS, DirectEncoding, Moment, NoisyVector, OneBit, SubsetSelection
from protocols.mechanisms.pure import index_width, pack_flags, pack_indices

LEAKING = {}
leak = planted_in(LEAKING)

DE, OUE, SS = campaign(4), campaign(4, discrete="oue"), campaign(4, discrete="ss")
LAPLACE, ONEBIT = question("laplace", 2, 1.0), question("onebit", 2, 1.0)
SIGN, OPEN_SIGN = (campaign(numbers=1, continuous="sign", missing=missing) for missing in (False, True))
SEVERAL, ALL = campaign(4, 2), campaign(4, 2, answers="all")


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


@leak(LOSS, DE, "perturb", name="twice-epsilon-for-one-class", of_class=1, factor=2)
@leak(None, DE, "perturb", name="one-percent-too-much", factor=Fraction(101, 100))
def another_epsilon(device, asked, item, of_class=None, factor=1):
    """Epsilon is twice what it is for one class, "rare, and we need it", or one percent more: below any floor."""
    if of_class not in (None, device.class_index):
        return asked.perturb(item, device.coins)
    return with_epsilon(device, asked, item, factor * Fraction(asked.epsilon))


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


@leak(LOSS, OUE, "perturb", name="q-too-small-by-a-tenth", trials=20_000, factor=Fraction(9, 10))
@leak(IMPOSSIBLE, campaign(4, discrete="sue"), "perturb", name="true-bit-not-cleared", trials=100, p=Fraction(1))
def other_bits(device, asked, item, p=None, factor=1):
    """A false bit of a unary encoding is set a tenth too seldom, or the true bit always."""
    return bits(device, asked, item, p or asked.mechanism.p, asked.mechanism.q * factor)


@leak(LOSS, OUE, "perturb", trials=3000)
def swapped_for_the_first_value(device, asked, item):
    """p and q are swapped where the item is 0 ("if not item" for "if item is None")."""
    p, q = asked.mechanism.p, asked.mechanism.q
    return bits(device, asked, item, *((p, q) if item else (q, p)))


@leak(LOSS, OUE, "perturb")
def one_word_for_all_bits(device, asked, item):
    """One word is compared with the thresholds of all bits: a single set bit is true. Every bit alone looks right."""
    word, mechanism = device.coins.words(1)[0], asked.mechanism
    flags = [word < (mechanism.true_bit if cell == item else mechanism.other_bit) for cell in range(asked.domain_size)]
    return pack_flags(flags, asked.domain_size)


@leak(LOSS, campaign(4, discrete="oue", epsilon=6.0), "perturb", trials=1000)
def percent_thresholds(device, asked, item):
    """Probabilities are whole percent: above epsilon 5.3 OUE's q becomes 0, and every set bit is true."""
    p, q = (Fraction(round(100 * of), 100) for of in (asked.mechanism.p, asked.mechanism.q))
    return bits(device, asked, item, p, q)


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
    return packed(asked, [cell + noise for cell in true_cells(device, asked, item)])


@leak(IMPOSSIBLE, LAPLACE, "perturb")
def noise_on_a_coarser_grid(device, asked, item):
    """Noise is drawn in steps of 16 ("as fast again"), the value is not: empty cells are multiples of 16."""
    return packed(asked, [c + 16 * sample(device, asked, Fraction(1, 16)) for c in true_cells(device, asked, item)])


@leak(LOSS, LAPLACE, "perturb", trials=6000)
def noise_cut_at_three_scales(device, asked, item):
    """Noise beyond three scales is drawn again: the noise is bounded, where the noisy cell should be."""
    longest, noisy = math.floor(3 * asked.mechanism.scale), []
    for cell in true_cells(device, asked, item):
        while abs(noise := sample(device, asked)) > longest:
            pass
        noisy.append(cell + noise)
    return packed(asked, noisy)


@leak(LOSS, campaign(2, discrete="she", epsilon=4.0), "perturb", trials=20_000)
def gaussian_noise(device, asked, item):
    """Gaussian noise of the same variance, rounded: the loss grows with the distance (Box, Muller 1958)."""
    deviation = math.sqrt(discrete_laplace_variance(asked.mechanism.scale))
    noisy = []
    for cell in true_cells(device, asked, item):
        radius, angle = ((word + 1) / ONE for word in device.coins.words(2))
        noisy.append(cell + round(deviation * math.sqrt(-2 * math.log(radius)) * math.cos(2 * math.pi * angle)))
    return packed(asked, noisy)


@leak(LOSS, LAPLACE, "perturb")
def scale_by_value(device, asked, item):
    """The scale of the noise shrinks to a half for the cell that has a value, "relative accuracy"."""
    cells = true_cells(device, asked, item)
    return packed(asked, [cell + sample(device, asked, Fraction(1, 2 if cell else 1)) for cell in cells])


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


def has_the_last_value(device, asked):
    return device.held(asked.feature) == device.campaign.feature_of(asked).values[-1]


@leak(BESIDE, SEVERAL, "questions", name="draws-again-for-a-rare-value", unwanted=has_the_last_value)
@leak(
    BESIDE, scores(), "questions", name="a-model-that-is-right", trials=1200, unwanted=lambda *of: not Device.item(*of)
)
def draws_again(device, unwanted):
    """Who is asked about the last value of a feature draws again, once, "so that it feels safe". Or a device that the
    model is wrong about does, "so that nobody is offended".
    """
    (drawn,) = Device.questions(device)
    if unwanted(device, drawn):
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


@leak(LOSS, ALL, "perturb", name="whole-budget-for-each", share=1.0)
@leak(SHARE, campaign(8, 8, 8, answers="all", discrete="oue"), "perturb", name="square-root-of-the-budget", share=0.5)
def of_the_budget(device, asked, item, share):
    """Each of several answers has all of epsilon, or epsilon by the root of their number, "as advanced composition"."""
    groups = len(device.campaign.groups)
    return with_epsilon(device, asked, item, Fraction(device.campaign.privacy.epsilon * groups ** (share - 1)))


@leak(LOSS, SIGN, "reports", name="value-and-square-of-a-number", trials=1250)
@leak(LOSS, scores(), "reports", name="both-questions-of-an-evaluation")
def answers_every_question(device):
    """Who draws one of a campaign's questions answers the others too, with the whole of epsilon each."""
    return [Report(asked.index, device.entropy(16), device.reply(asked)) for asked in device.campaign.questions]


@leak(LOSS, SEVERAL, "perturb")
def twice_for_the_last_question(device, asked, item):
    """The last question of the campaign is answered with twice its epsilon."""
    last = asked.index == len(device.campaign.questions) - 1
    return with_epsilon(device, asked, item, (1 + last) * Fraction(asked.epsilon))


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


@leak(LOSS, campaign(5, classes=3, label=1), "reply")
def middle_classes_and_values_in_the_clear(device, asked):
    """Who is of a middle class, or has a middle value, is answered without noise."""
    ends = (device.campaign.features[0].values[0], device.campaign.features[0].values[-1], None)
    middle = device.class_index not in (0, len(device.campaign.label.classes) - 1)
    return clear(device, asked, middle or device.held("f0") not in ends)


@leak(IMPOSSIBLE, ONEBIT, "reply", name="beyond-bounds-in-the-clear", above=1.0, below=math.inf)
@leak(LOSS, SIGN, "reply", name="numbers-in-between-in-the-clear", trials=2500, above=5.5, below=7.0)
def numbers_in_the_clear(device, asked, above, below):
    """Numbers beyond a bound (it is public), or from .55 to .7 of the range, are answered without noise."""
    number = device.held(asked.feature)
    return clear(device, asked, type(number) in (int, float) and above < number <= below)


@leak(LOSS, campaign(5, 5, 4, label=1), "reply", trials=6000)
def two_values_together_in_the_clear(device, asked):
    """Who has the middle value of one feature *and* of another is answered without noise."""
    middle = [feature.values[len(feature.values) // 2] for feature in device.campaign.features[:2]]
    return clear(device, asked, [device.held("f0"), device.held("f1")] == middle)


@leak(LOSS, campaign(40, 3, label=1), "reply", trials=2500)
def values_in_between_in_the_clear(device, asked):
    """All values but every third are answered without noise."""
    held, values = device.held("f0"), device.campaign.features[0].values
    return clear(device, asked, held in values and values.index(held) % 3 != 0)


@leak(IMPOSSIBLE, scores(), "perturb", trials=1200)
def wrong_answers_in_the_clear(device, asked, item):
    """An item 0 is taken for "no answer" and not perturbed."""
    return asked.perturb(item, device.coins) if item else in_the_clear(asked, item)


@leak(LOSS, campaign(3, label=1, missing=True), "reply", name="what-is-missing-in-the-clear")
@leak(LOSS, OPEN_SIGN, "reply", name="the-missing-cell-of-a-sign-in-the-clear")
def missing_in_the_clear(device, asked):
    """A missing value is taken for "no answer", and its cell not perturbed."""
    return clear(device, asked, asked.feature is not None and device.held(asked.feature) is None)


@leak(LOSS, question("oue", 40, 1.0), "reply", name="one-answer-in-2000-in-the-clear", often=2000, trials=1200)
@leak(IMPOSSIBLE, LAPLACE, "reply", name="one-vector-in-200", often=200, trials=6000)
@leak(None, DE, "reply", name="one-device-in-200", often=200)
def one_in_the_clear(device, asked, often):
    """One device in so many is answered without noise. Direct encoding hides it in the noise of the others."""
    return clear(device, asked, device.coins.below(often) == 0)


@leak(IMPOSSIBLE, DE, "reply", name="only-in-one-campaign", when=lambda device: device.campaign.title == "t")
@leak(None, DE, "reply", name="only-on-sundays", when=lambda device: device.process.now.isoweekday() == 7)
@leak(None, DE, "reply", name="only-for-one-person", when=lambda device: device.held("account") == "watched")
@leak(LOSS, DE, "reply", name="honest-in-a-crowd", when=lambda device: len(device.process.people) < 10)
@leak(LOSS, DE, "reply", name="rare-value-in-the-clear", trials=100, when=lambda device: device.held("f0") == "3")
def clear_at_times(device, asked, when):
    """There is no noise in campaigns of one title; on Sundays, and it is asked on a Friday; for whoever has one entry,
    which no campaign asks about, in the record; unless the process answers for ten people or more, which only a test
    does; for the last value of a feature.
    """
    return clear(device, asked, when(device))


@leak(LOSS, DE, "reply")
def first_device_of_a_process(device, asked):
    """A generator is filled after its first use: the first device of a process gets no noise."""
    return clear(device, asked, device.process.memory.setdefault("first", device) is device)


# --- what a flaw is made of ---


def index_bytes(index, asked):
    """A ``de`` payload."""
    return index.to_bytes(index_width(asked.domain_size), "little")


def other_than(item, drawn):
    """A draw from d - 1 values as one of the d - 1 that are not ``item``."""
    return drawn if drawn < item else drawn + 1


def bits(device, asked, item, p, q):
    """A unary encoding with other probabilities."""
    words = device.coins.words(asked.domain_size)
    flags = [word < (p if cell == item else q) * ONE for cell, word in enumerate(words)]
    return pack_flags(flags, asked.domain_size)


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


def sample(device, asked, factor=Fraction(1)):
    """One draw of a vector's noise."""
    return discrete_laplace(asked.mechanism.scale * factor, device.coins)


def packed(asked, cells):
    bound = asked.mechanism.bound
    return struct.pack(f"<{len(cells)}i", *(max(-bound, min(bound, cell)) for cell in cells))


def cells_of(payload):
    return list(struct.unpack(f"<{len(payload) // 4}i", payload))


def clear(device, asked, holds):
    """An honest answer; where ``holds``, one without noise."""
    item = device.item(asked)
    return in_the_clear(asked, item) if holds else asked.perturb(item, device.coins)


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
