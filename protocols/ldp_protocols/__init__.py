"""The agreement of both sides: campaign document, questions, mechanisms, exact randomness, report wire format.

Names are loaded when they are first used: a device that only looks at its ledger reads no campaign.
"""

from ldp_protocols.names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__spec__)
