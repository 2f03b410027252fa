"""What a collector sees: estimated shares with 95 % intervals, read over HTTP with nothing but the standard library.

ldp-aggregator token create --scope collector --data data/
python examples/read_estimates.py http://127.0.0.1:8080 CAMPAIGN_ID TOKEN
"""

import json
import sys
from urllib.request import Request, urlopen


def main() -> None:
    url, campaign_id, token = sys.argv[1:]
    request = Request(f"{url}/v1/campaigns/{campaign_id}/estimates", headers={"Authorization": f"Bearer {token}"})
    with urlopen(request) as answer:
        estimates = json.load(answer)
    for question in estimates["questions"]:
        print(f"{question['feature'] or 'the label alone'}: {question['n']} reports by {question['mechanism']}")
        for cell in question["cells"]:
            name = " and ".join(
                str(part) for part in (cell["value"], cell.get("class"), cell.get("other_value")) if part
            )
            # A share is unbiased before it is processed: with few reports it may lie below 0, and so may its interval.
            print(f"  {name:30} {cell['estimate']:7.3f}   from {cell['low']:.3f} to {cell['high']:.3f}")


if __name__ == "__main__":
    main()
