"""Two harmless averages give away one salary; two private ones do not.

A company answers "what is the average salary of this department?". Mallory is the newest colleague. Whoever asks
before and after Mallory's first day multiplies, subtracts, and knows what Mallory earns. Run: python salary_attack.py
"""

from __future__ import annotations

import statistics

from ldp_aggregator.trainers import private_mean

SALARIES = {"Alice": 52_000, "Bob": 61_000, "Carol": 48_500, "Dave": 75_000, "Eve": 66_000, "Mallory": 93_700}
LOW, HIGH = 0, 200_000  # public: what salaries there are at all


def deduce(before: float, after: float, people: int) -> float:
    """The newcomer's salary from the averages without and with them, ``people`` being the latter's number."""
    return people * after - (people - 1) * before


def main() -> None:
    everybody = list(SALARIES.values())
    others = [salary for name, salary in SALARIES.items() if name != "Mallory"]
    exact = deduce(statistics.fmean(others), statistics.fmean(everybody), len(everybody))
    print(f"from exact averages:   Mallory earns {exact:,.0f}")

    def private(salaries: list[int]) -> float:
        return private_mean(salaries, low=LOW, high=HIGH, epsilon=1.0, relation="add-remove")

    for attempt in range(1, 4):
        guess = deduce(private(others), private(everybody), len(everybody))
        print(f"from private averages: Mallory earns {guess:,.0f} (attempt {attempt}, epsilon 1 each)")


if __name__ == "__main__":
    main()
