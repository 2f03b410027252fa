"""Devices of people who are asked: each gets a token of the issuer, answers, and hands the answer to the relay, sealed.

    devices.py COLLECT RELAY ISSUER CAMPAIGN FIRST LAST

Prints a line for each that has handed over, and goes on until all have: what is stopped meanwhile comes back.
"""

from __future__ import annotations

import base64
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from urllib.error import URLError

from ldp_client import Device
from ldp_protocols import LdpError

MOST_SECONDS = 120
AGES = ("young", "medium", "old", "missing")
TYPE = "application/private-token-request"


def main() -> None:
    collect, relay, issuer, campaign, first, last = sys.argv[1:]
    until = time.monotonic() + MOST_SECONDS
    with ThreadPoolExecutor(4) as pool:
        people = range(int(first), int(last))
        for number in pool.map(lambda one: answer(collect, relay, issuer, campaign, one, until), people):
            print(number, flush=True)


def answer(collect: str, relay: str, issuer: str, campaign: str, person: int, until: float) -> int:
    """One device from its first start to the relay's word that the answer is on disk."""

    def post(request: bytes) -> bytes:
        login = base64.b64encode(f"person{person}:password".encode()).decode()
        headers = {"Content-Type": TYPE, "Authorization": f"Basic {login}"}
        with urllib.request.urlopen(urllib.request.Request(issuer, request, headers), timeout=10) as told:
            signed: bytes = told.read()
        return signed

    device = Device(":memory:", max_total_epsilon=4, relay=relay)
    part = device.campaign(collect, campaign, max_epsilon=2)
    problem = ""
    while time.monotonic() < until:
        try:
            step = part.next_step()
            if step.step == "ask":
                part.grant()
            elif step.step == "token":
                part.obtain_token(post)
            elif step.step == "contribute":
                record = {"age": AGES[person % 4], "words": 2000 * person % 200_000}
                part.contribute(record, ("yes", "no")[person % 2])
            elif device.run_once(5) and part.status().fate == "arrived":
                return person
            problem = str(part.status().problem or step.reason or step.step)
        except (LdpError, URLError, OSError) as error:
            problem = str(error)
            time.sleep(0.2)
    raise SystemExit(f"person {person} has not handed over: {problem}")


if __name__ == "__main__":
    main()
