"""Whether a device would answer a campaign: decided from the document, the ledger, the caps and the clock alone."""

from __future__ import annotations

from ldp_client.errors import RefusedError
from ldp_client.ledger.receipts import Caps, total, total_up
from protocols.light import TYPE_CHECKING

if TYPE_CHECKING:
    from ldp_client.ledger.installation import Installation
    from protocols import Campaign


def refusal(device: Installation, campaign: Campaign, caps: Caps, now: float, tolerance: float) -> RefusedError | None:
    """Why this device will not answer ``campaign``, None where it would. ``tolerance``: by how many seconds the clock
    ``now`` may be wrong.
    """
    from fractions import Fraction

    from protocols.exact.rationals import exact_epsilon

    if not device.enabled:
        return RefusedError("switched-off", "contributing is switched off on this device")
    if campaign.opens is not None and now + tolerance < campaign.opens.timestamp():
        return RefusedError("campaign-not-open", f"the campaign opens at {campaign.opens:%Y-%m-%d %H:%M} UTC")
    if campaign.closes is not None and now - tolerance > campaign.closes.timestamp():
        return RefusedError("campaign-closed", f"the campaign closed at {campaign.closes:%Y-%m-%d %H:%M} UTC")
    costs = f"the campaign costs epsilon {campaign.realised_epsilon:.6g}"
    if campaign.loss > exact_epsilon(caps.epsilon):
        return RefusedError("loss-above-cap", f"{costs}, above the cap of {caps.epsilon:g}")
    if total(device.receipts) + Fraction(campaign.realised_epsilon) > exact_epsilon(caps.total_epsilon):
        return RefusedError(
            "total-above-cap",
            f"{costs} and {total_up(device.receipts):.6g} is spent; the cap over the life of this install is "
            f"{caps.total_epsilon:g}",
        )
    if campaign.study is not None and any(receipt.study == campaign.study for receipt in device.receipts):
        return RefusedError(
            "study-answered", "this device has answered another campaign of the same study; one is the most"
        )
    return None
