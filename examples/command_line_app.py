"""A program that asks its user first, contributes once, and shows what that cost.

    python examples/command_line_app.py URL CAMPAIGN_ID [--yes]

Run it as often as you like: only the first run answers, later ones deliver what is still unsent and classify.
"""

import sys
from pathlib import Path

from ldp_client import Client, ClientError, ModelUnavailableError

STORAGE = Path("my-app.db")

# What this program knows about its user. None of it leaves the machine as it is.
RECORD = {"age": "young", "income": 52_000}
LABEL = "no"


def ask(client: Client) -> bool:
    campaign = client.campaign()
    print(f"{campaign.title}\n{campaign.purpose}")
    print(
        f"One answer would be sent, with noise added here; your privacy loss is epsilon {campaign.realised_epsilon:g}."
    )
    return "--yes" in sys.argv or input("Do you want to take part? [y/N] ").strip().lower() == "y"


def main() -> None:
    url, campaign_id = sys.argv[1:3]
    client = Client(url, campaign_id, storage=STORAGE, max_epsilon=2, max_total_epsilon=4)
    if client.status().consent is None:
        if ask(client):
            client.grant()
        else:
            client.withdraw()
    if client.consented:
        client.contribute(RECORD, LABEL)
        print("delivered" if client.run_once(20) else "not delivered yet, run me again later")
    print(client.ledger())
    try:
        client.refresh_model()
        print(f"the model's guess about you: {client.predict(RECORD)}")
    except ModelUnavailableError:
        print("there is no model yet")


if __name__ == "__main__":
    try:
        main()
    except ClientError as error:
        sys.exit(f"{error} ({error.code})")
