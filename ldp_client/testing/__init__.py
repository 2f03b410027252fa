"""For an app's own tests: a server that speaks the aggregator's HTTP contract, a clock to turn, and coins to script.

::

    with FakeServer() as server:
        campaign = server.publish(draft)
        device = Device(":memory:", max_total_epsilon=1)
        part = device.campaign(server.url, campaign.id, max_epsilon=1)
        part.grant()
        part.contribute({"age": "young"}, "yes")
        assert device.run_once(timeout=5)
        assert server.counted(campaign.id) == 1

Not in the small wheel ``ldp-bayes-client``: tests run where ``ldp-bayes`` is installed.
"""

from protocols.names import loaded_on_use

with loaded_on_use(globals()):
    from ldp_client.testing.fakes import Answer as Answer
    from ldp_client.testing.fakes import FakeClock as FakeClock
    from ldp_client.testing.fakes import FakeServer as FakeServer
    from protocols import ScriptedCoins as ScriptedCoins
