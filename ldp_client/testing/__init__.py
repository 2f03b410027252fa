"""For an app's own tests: a server that speaks the aggregator's HTTP contract, a clock to turn, and coins to script.

::

    with FakeServer() as server:
        campaign = server.publish(draft)
        device = Device(":memory:", max_total_epsilon=1)
        asked = device.campaign(server.url, campaign.id, max_epsilon=1)
        asked.grant()
        asked.contribute({"age": "young"}, "yes")
        assert device.run_once(timeout=5)
        assert server.counted(campaign.id) == 1
"""

from ldp_protocols.names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__spec__)
