"""The agreement of both sides: campaign document, questions, mechanisms, exact randomness, report wire format.

Names are loaded when they are first used: a device that only looks at its ledger reads no campaign.
"""

from protocols.names import loaded_on_use

with loaded_on_use(globals()):
    from protocols.document.campaign import Campaign as Campaign
    from protocols.document.questions import Question as Question
    from protocols.errors import DocumentError as DocumentError
    from protocols.errors import DraftError as DraftError
    from protocols.errors import LdpError as LdpError
    from protocols.errors import ModelError as ModelError
    from protocols.errors import NotInstalledError as NotInstalledError
    from protocols.errors import PayloadError as PayloadError
    from protocols.errors import ProtocolError as ProtocolError
    from protocols.errors import RecordError as RecordError
    from protocols.errors import SecretError as SecretError
    from protocols.errors import UploadError as UploadError
    from protocols.exact.coins import SYSTEM_COINS as SYSTEM_COINS
    from protocols.exact.coins import Coins as Coins
    from protocols.exact.coins import ScriptedCoins as ScriptedCoins
    from protocols.exact.coins import SystemCoins as SystemCoins
    from protocols.mechanisms import Mechanism as Mechanism
    from protocols.wire import Report as Report
    from protocols.wire import decode_upload as decode_upload
    from protocols.wire import encode_upload as encode_upload
