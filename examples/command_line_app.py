"""A program that asks its user first, contributes once, and shows what that cost.

    python examples/command_line_app.py URL CAMPAIGN_ID [--yes]

Run it as often as you like: only the first run answers, later ones deliver what is still unsent and classify.
"""

import sys

from ldp_client import Device, DeviceCampaign, LdpError, TransportError

STORAGE = "my-app.db"  # Device.default_path("my-app") is the place for an app that is installed

# What this program knows about its user. None of it leaves the machine as it is.
RECORD = {"age": "young", "words": 52_000}
LABEL = "no"


def ask(campaign: DeviceCampaign) -> bool:
    document = campaign.fetch()
    print(f"{document.title}\n{document.purpose}")
    print(
        f"One answer would be sent, with noise added here; your privacy loss is epsilon {document.realised_epsilon:g}."
    )
    return "--yes" in sys.argv or input("Do you want to take part? [y/N] ").strip().lower() == "y"


def main() -> None:
    url, campaign_id = sys.argv[1:3]
    device = Device(STORAGE, max_total_epsilon=4)
    campaign = device.campaign(url, campaign_id, max_epsilon=2)
    step = campaign.next_step()
    if step.step == "ask":
        step = campaign.decide(ask(campaign))
    if step.step == "contribute":
        campaign.contribute(RECORD, LABEL)
    if campaign.status().consent:
        print("delivered" if device.run_once(timeout=20) else "not delivered yet, run me again later")
    print(device.ledger())
    try:
        print(f"the model's guess about you: {campaign.classifier().predict(RECORD)}")
    except TransportError as error:
        if error.code != "no-model":
            raise
        print("there is no model yet")


if __name__ == "__main__":
    try:
        main()
    except LdpError as error:
        sys.exit(f"{error} ({error.code})")
