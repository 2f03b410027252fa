"""The system against a model of it: upload, replay, lost answers, kills, restarts, endings, clock steps, two instances.

Every report hits a cell of its own, so any 2 proves double counting and any 0 of an acknowledged report proves loss.
"""

import asyncio
import shutil
import tempfile
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import pytest
from cells import SteppedClock, cell_campaign, count
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from ldp_aggregator.server.housekeeping import close_due
from ldp_aggregator.store import SqliteStore, StoreError

CELLS = 128

numbers = st.lists(st.integers(0, CELLS - 1), min_size=1, max_size=6, unique=True)
instances = st.integers(0, 1)


class Killed(Exception):  # noqa: N818 - it is no error of ours
    """The process died here; what was not committed is gone."""


class KillableStore(SqliteStore):
    """Dies on demand inside a transaction, before its commit."""

    dies = False

    async def _count_batch(self, db, campaign_id, batch):
        answers = await super()._count_batch(db, campaign_id, batch)
        self._perhaps_die()
        return answers

    async def _write(self, work, name=""):
        async def perhaps(db):
            result = await work(db)
            if name in ("_end", "_seal"):
                self._perhaps_die()
            return result

        return await super()._write(perhaps, name)

    def _perhaps_die(self):
        if self.dies:
            self.dies = False
            raise Killed


class System(RuleBasedStateMachine):
    """Two instances on one store file, and what clients know about their reports."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="ldp-model-"))
        self.loop = asyncio.new_event_loop()
        self.clock = SteppedClock()
        self.campaign = cell_campaign(CELLS)
        self.stores = [self.open(), self.open()]
        self.run(self.stores[0].create_campaign(self.campaign))
        self.sent, self.acknowledged, self.closed, self.sealed = set(), set(), False, False

    def open(self):
        return KillableStore(self.folder / "store.sqlite3", clock=self.clock)

    def run(self, awaitable):
        return self.loop.run_until_complete(awaitable)

    def count(self, instance, chosen):
        self.sent |= set(chosen)
        return self.run(count(self.stores[instance], self.campaign, chosen))

    @contextmanager
    def killed(self, instance):
        """Before it commits, and started again."""
        self.stores[instance].dies = True
        yield
        self.restart(instance)

    @rule(instance=instances, chosen=numbers)
    def upload(self, instance, chosen):
        outcome = self.count(instance, chosen)
        if self.sealed:
            assert outcome.refused == "campaign-closed"
        elif self.closed:
            left = {"campaign-closing", "campaign-closed"}
            assert outcome.refused in left or {code for _, code in outcome.rejected} <= left
            assert outcome.refused is None or not self.acknowledged & set(chosen), "what is known is a success"
        else:
            assert (outcome.refused, outcome.rejected) == (None, ())
            self.acknowledged |= set(chosen)

    @rule(instance=instances, chosen=numbers)
    def upload_whose_answer_is_lost(self, instance, chosen):
        self.count(instance, chosen)

    @rule(instance=instances, chosen=numbers)
    @precondition(lambda self: not self.closed)
    def upload_killed_before_its_commit(self, instance, chosen):
        with self.killed(instance), suppress(Killed):
            self.count(instance, chosen)

    @rule(instance=instances)
    def restart(self, instance):
        """Kill -9 and start again."""
        self.run(self.stores[instance].close())
        self.stores[instance] = self.open()

    @rule(instance=instances)
    def close(self, instance):
        self.run(self.stores[instance].close_campaign(self.campaign.id))
        self.closed = True

    @rule(instance=instances)
    @precondition(lambda self: not self.closed)
    def close_killed_before_its_commit(self, instance):
        with self.killed(instance), suppress(Killed):
            self.run(self.stores[instance].close_campaign(self.campaign.id))

    @rule(instance=instances)
    def reopen(self, instance):
        with pytest.raises(StoreError) if self.sealed else nullcontext():
            self.run(self.stores[instance].reopen_campaign(self.campaign.id))
            self.closed = False

    @rule(instance=instances)
    @precondition(lambda self: self.closed and not self.sealed)
    def seal_killed_before_its_commit(self, instance):
        with self.killed(instance), pytest.raises(Killed):
            self.run(self.stores[instance].seal_campaign(self.campaign.id, at_once=True))

    @rule(instance=instances)
    def seal(self, instance):
        with nullcontext() if self.closed else pytest.raises(StoreError):
            self.run(self.stores[instance].seal_campaign(self.campaign.id, at_once=True))
            self.sealed = True

    @rule(seconds=st.integers(-400 * 86_400, 400 * 86_400))
    def step_the_clock(self, seconds):
        self.clock.step(seconds)
        self.run(close_due(self.stores[0], self.run(self.stores[0].moment())))

    @invariant()
    def nothing_is_lost_and_nothing_counts_twice(self):
        for store in self.stores:
            tally = self.run(store.tally(self.campaign.id))
            cells = tally.counts[0].tolist()
            assert max(cells) <= 1, "a report was counted twice"
            counted = {cell for cell, n in enumerate(cells) if n}
            assert self.acknowledged <= counted, "an acknowledged report is lost"
            assert counted <= self.sent, "something was counted that nobody sent"
            assert int(tally.n[0]) == len(counted)
            assert self.run(store.check()) == []

    def teardown(self):
        for store in self.stores:
            self.run(store.close())
        self.loop.close()
        shutil.rmtree(self.folder)


@pytest.mark.parametrize("examples", [25, pytest.param(10_000, marks=pytest.mark.long)])
def test_the_system_does_as_the_model_says(examples):
    run_state_machine_as_test(
        System,
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            database=None,
            report_multiple_bugs=False,
            phases=[Phase.generate],  # A failure is printed as it was found; shrinking would take minutes.
            suppress_health_check=list(HealthCheck),
        ),
    )
