"""A small device that measures, sleeps, and sends when its power budget allows: the host drives the delivery.

python examples/sensor_loop.py URL CAMPAIGN_ID [ROUNDS]
"""

import random
import sys
import time

from ldp_client import Client, ClientError

ROUND_SECONDS = 0.2  # an hour, on a real device
SEND_SECONDS = 5.0  # the radio is on for this long at most


def measure() -> dict[str, object]:
    """Stands for reading the sensors."""
    return {"age": random.choice(["young", "medium", "old"]), "income": random.uniform(0, 200_000)}


def main() -> None:
    url, campaign_id = sys.argv[1:3]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    client = Client(url, campaign_id, storage="sensor.db", max_epsilon=2, max_total_epsilon=4)
    client.grant()  # whoever set the device up has agreed
    for _ in range(rounds):
        record = measure()
        try:
            client.contribute(record, "yes" if record["age"] == "young" else "no")
        except ClientError as error:
            # No network yet, a full card: measuring goes on.
            print(f"not contributed: {error.code}")
        # One call while the radio is on. It never raises and never takes longer.
        done = client.run_once(SEND_SECONDS)
        try:
            guess = client.predict(record)
        except ClientError:
            guess = "no model yet"
        print(f"sent {client.status().sent}, all delivered: {done}, guess: {guess}")
        time.sleep(ROUND_SECONDS)


if __name__ == "__main__":
    main()
