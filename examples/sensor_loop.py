"""A small device that measures, sleeps, and sends when its power budget allows: the host drives the delivery.

python examples/sensor_loop.py URL CAMPAIGN_ID [ROUNDS]
"""

import random
import sys
import time

from ldp_client import Device, LdpError

ROUND_SECONDS = 0.2  # an hour, on a real device
SEND_SECONDS = 5.0  # the radio is on for this long at most


def measure() -> dict[str, object]:
    """Stands for reading the sensors."""
    return {"age": random.choice(["young", "medium", "old"]), "words": random.uniform(0, 200_000)}


def main() -> None:
    url, campaign_id = sys.argv[1:3]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    device = Device("sensor.db", max_total_epsilon=4)
    campaign = device.campaign(url, campaign_id, max_epsilon=2)
    for _ in range(rounds):
        record = measure()
        try:
            if not campaign.status().consent:
                campaign.grant(timeout=SEND_SECONDS)  # whoever set the device up has agreed
            campaign.contribute(record, "yes" if record["age"] == "young" else "no")
        except LdpError as error:
            # No network yet, a full card: measuring goes on.
            print(f"not contributed: {error.code}")
        # One call while the radio is on. It never raises and never takes longer.
        done = device.run_once(timeout=SEND_SECONDS)
        try:
            guess = campaign.classifier(timeout=SEND_SECONDS).predict(record)
        except LdpError:
            guess = "no model yet"
        print(f"sent {campaign.status().sent}, all delivered: {done}, guess: {guess}")
        time.sleep(ROUND_SECONDS)


if __name__ == "__main__":
    main()
