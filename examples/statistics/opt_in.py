"""Usage statistics with an opt-in and an off switch, for a program that people install.

python opt_in.py URL CAMPAIGN_ID RECORD.json on | off | show | export
"""

import json
import sys
from pathlib import Path

from ldp_client import Device, LdpError

STORAGE = "usage.db"


def main(url: str, campaign_id: str, place: str, wish: str) -> None:
    device = Device(STORAGE, max_total_epsilon=4)
    campaign = device.campaign(url, campaign_id, max_epsilon=2)
    record = json.loads(Path(place).read_text(encoding="utf-8"))  # what the program knows of its own installation
    if wish == "on":  # as often as the program starts: it answers once, ever
        device.enabled = True
        campaign.decide(agreed=True)
        campaign.contribute(record)
        print("delivered" if device.run_once(timeout=20) else "not delivered yet; it tries again")
    elif wish == "off":
        campaign.withdraw()
        device.enabled = False
        print("nothing is asked or sent any more")
    elif wish == "show":  # what would be sent, before anybody agrees: the truth, and each answer's chance
        print(f"{campaign.fetch().title}\n{campaign.explained()}\n{campaign.preview(record)}")
    else:  # everything that is kept here, for the person
        print(json.dumps(device.export(), indent=2))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:5])
    except LdpError as error:
        sys.exit(f"{error} ({error.code})")
