from ldp_client.testing.fakes import Answer as Answer
from ldp_client.testing.fakes import FakeClock as FakeClock
from ldp_client.testing.fakes import FakeServer as FakeServer
from ldp_protocols import ScriptedCoins as ScriptedCoins
