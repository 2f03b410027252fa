"""The caps that an app sets, and the reasons why a device refuses a campaign: caps, times, its window, its studies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ldp_client.errors import RefusedError
from ldp_client.ledger import Installation, total, total_up
from ldp_client.policy import CLOCK_TOLERANCE
from ldp_protocols.errors import LdpError

if TYPE_CHECKING:
    from ldp_protocols import Campaign

NOT_YET: Final = "window-not-open"
"""The window of this device is still to come."""


class Caps(NamedTuple):
    """The most that an app lets its user lose: in one campaign, and over the life of the install. ``crowd_epsilon`` and
    ``if_both_collude`` are for campaigns with a crowd, which are refused without them: what may be learned where relay
    and aggregator keep apart, and where they do not.
    """

    epsilon: float
    total_epsilon: float
    crowd_epsilon: float | None = None
    if_both_collude: float | None = None


def read_cap(name: str, cap: object) -> float:
    """A cap as a plain double, whatever kind of number it came as. Raises LdpError."""
    if not isinstance(cap, (bool, str, bytes)):
        try:
            number = float(cap)  # type: ignore[arg-type]  # what is no number says so
        except (TypeError, ValueError, OverflowError):
            number = 0.0
        if 0 < number < float("inf"):
            return number
    raise LdpError("bad-cap", f"{name} must be a finite number above 0")


def refusal(device: Installation, campaign: Campaign, caps: Caps, now: float) -> RefusedError | None:
    """The reason why this device will not answer ``campaign``, None where it would. The clock ``now`` may be wrong by
    CLOCK_TOLERANCE.
    """
    from ldp_protocols.exact import exact_epsilon

    if not device.enabled:
        return RefusedError("switched-off", "contributing is switched off on this device")
    if campaign.opens is not None and now + CLOCK_TOLERANCE < campaign.opens.timestamp():
        return RefusedError("campaign-not-open", f"the campaign opens at {campaign.opens:%Y-%m-%d %H:%M} UTC")
    if campaign.closes is not None and now - CLOCK_TOLERANCE > campaign.closes.timestamp():
        return RefusedError("campaign-closed", f"the campaign closed at {campaign.closes:%Y-%m-%d %H:%M} UTC")
    costs = f"the campaign costs epsilon {campaign.realised_epsilon:.6g}"
    most = caps.epsilon
    if (crowd := campaign.privacy.crowd) is not None:
        costs += " where relay and aggregator work together"
        if caps.crowd_epsilon is None or caps.if_both_collude is None:
            sentence = (
                f"{costs}, {crowd.epsilon:g} where they do not; max_if_both_collude and max_crowd_epsilon allow that"
            )
            return RefusedError("crowd-cap-missing", sentence)
        if exact_epsilon(crowd.epsilon) > exact_epsilon(caps.crowd_epsilon):
            sentence = (
                f"the campaign's crowd promises epsilon {crowd.epsilon:g}, above the cap of {caps.crowd_epsilon:g}"
            )
            return RefusedError("crowd-above-cap", sentence)
        most = caps.if_both_collude
    if campaign.loss > exact_epsilon(most):
        return RefusedError("loss-above-cap", f"{costs}, above the cap of {most:g}")
    if total(device.receipts) + campaign.loss > exact_epsilon(caps.total_epsilon):
        return RefusedError(
            "total-above-cap",
            f"{costs} and {total_up(device.receipts):.6g} is spent; the cap over the life of this install is "
            f"{caps.total_epsilon:g}",
        )
    if campaign.study is not None and any(receipt.study == campaign.study for receipt in device.receipts):
        return RefusedError(
            "study-answered", "this device has answered another campaign of the same study; one is the most"
        )
    return _out_of_window(device, campaign, now)


def _out_of_window(device: Installation, campaign: Campaign, now: float) -> RefusedError | None:
    """The reason why this device does not answer a series now; its window is drawn from its secret, once it has one."""
    if campaign.windows is None or not device.secret:
        return None
    from datetime import datetime, timezone

    from ldp_client.draw import draw_window

    own = draw_window(campaign, device.secret)
    window, at = campaign.windows.told(own), campaign.windows.open_at(datetime.fromtimestamp(now, timezone.utc))
    if at < own:
        return RefusedError(NOT_YET, f"this device answers in {window}; come again then")
    if at > own:
        return RefusedError("window-over", f"this device was to answer in {window}; it answers in no other")
    return None
