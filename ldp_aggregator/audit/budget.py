"""The probability to be wrong about a sound client, shared out: to every kind of evidence its own part.

Within a kind every event and every comparison has an equal part of the kind's, whatever their number, and that number
is fixed by the document or by the half of the trials that chooses, never by the one that tests; so the union bound
holds, and needs no independence. Each single part is an exact tail of a binomial law: of the counts of an event
(Clopper and Pearson), of right guesses, of bits of ids, of words that follow a recurrence. A sound client's answers are
independent given whose they are, and its ids are uniform; nothing else is assumed, of the number of trials nothing.
What no coin excuses (lengths, headers, shapes of answers, answers to a device that asks again) has no part: a sound
client never breaks it.
"""

from __future__ import annotations

from typing import Final

from ldp_aggregator.audit.searching.events import ALONE, BLOCK, COMPANY, SIDE, WHOLE

FIXED: Final = "fixed guesses"
GAMES: Final = "games"
SUM: Final = "sum"
COINS: Final = "coins"
UNEVEN: Final = "uneven ids"
REPEATED: Final = "repeated ids"
TWISTED: Final = "twisted ids"
SEEDED: Final = "seeds that anybody finds"
TIME: Final = "time"

SHARES: Final = {
    FIXED: 0.35,
    GAMES: 0.15,
    SUM: 0.1,
    WHOLE: 0.08,
    BLOCK: 0.05,
    SIDE: 0.05,
    COMPANY: 0.05,
    ALONE: 0.03,
    COINS: 0.05,
    UNEVEN: 0.03,
    REPEATED: 0.01,
    TWISTED: 0.01,
    SEEDED: 0.02,
    TIME: 0.02,
}
"""Parts of the whole. Guesses prove the most of a sound client."""
