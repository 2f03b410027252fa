"""A page that shows a campaign's statistics: shares with their intervals, averages and medians. No script, no stranger.

python results_page.py URL CAMPAIGN_ID COLLECTOR_TOKEN > results.html
"""

import json
import sys
from html import escape
from urllib.request import Request, urlopen

HEAD = """<!doctype html><html lang="en"><meta charset="utf-8"><title>What was answered</title>
<style>body{font:16px system-ui;max-width:50rem;margin:2rem auto;padding:0 1rem}th{text-align:left;font-weight:400}
meter{width:12rem}td{padding-right:1rem}</style>"""


def read(url: str, token: str) -> dict:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with urlopen(Request(url, headers=headers)) as answer:
        return json.load(answer)


def share(cell: dict) -> str:
    """A row of a value: a bar, the share, and its 95 % interval, none of them below 0 or above 1."""
    low, high = (100 * min(max(cell[end], 0.0), 1.0) for end in ("low", "high"))
    value = 100 * min(max(cell["processed"], 0.0), 1.0)
    name = ", ".join(filter(None, (cell["value"], cell.get("other_value"))))
    bar = f'<meter max="100" value="{value:.1f}"></meter>'
    return f'<tr><th scope="row">{escape(name)}<td>{bar}<td>{value:.0f} %<td>{low:.0f} to {high:.0f} %'


def number(row: dict) -> str:
    about = {"quantile": f"{100 * float(row.get('value') or 0):.0f} in 100 have at most"}.get(row["kind"], row["kind"])
    return f'<tr><th scope="row">{about}<td><td>{row["estimate"]:.4g}<td>{row["low"]:.4g} to {row["high"]:.4g}'


def page(title: str, told: dict) -> str:
    parts = [HEAD, f"<h1>{escape(title)}</h1>"]
    for one in told["questions"]:
        rows = [share(cell) for cell in one["cells"]] if one["kind"] in ("pair", "joint") and one["n"] else []
        if one["kind"] in ("pair", "value") and one["n"]:
            found = [
                row for row in told["summaries"] if row["feature"] == one["feature"] and row.get("estimate") is not None
            ]
            rows += [number(row) for row in found]
        if rows:
            about = " and ".join(filter(None, (one["feature"], one.get("other"))))
            parts.append(f"<h2>{escape(about)}</h2><p>{one['n']:,} answers</p><table>{''.join(rows)}</table>")
    return "\n".join(parts)


def main() -> None:
    url, campaign_id, token = sys.argv[1:]
    place = f"{url}/v1/campaigns/{campaign_id}"
    print(page(read(place, "")["title"], read(f"{place}/estimates", token)))


if __name__ == "__main__":
    main()
