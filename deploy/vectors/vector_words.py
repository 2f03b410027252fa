"""What people are told: ledgers, answers, previews and promises, in words that every client says to the letter."""

from ldp_client.ledger import FATES, Ledger, Receipt
from ldp_client.preview import preview_of
from ldp_client.words import asked, explained, said

URLS = ("https://collect.example.org", "http://127.0.0.1:8080")
TITLES = ("Sleep", 'A "quoted"\ttitle', "line\n* forged", "\u202eright to left", "\u00a0wide", "\U0001f600 \x9b \ue000")


def words(known, reports, records):
    """Everything in words that is a function of what is stored and of a campaign's document."""
    return {
        "ledgers": list(_ledgers()),
        "said": list(_said(known, reports)),
        "explained": list(_explained(known)),
        "previews": list(_previews(known, records)),
    }


def receipt(title="Sleep", epsilon=1.0, questions=(0,), at=1_800_000_000.0, fate="waiting", window="", **crowd):
    """A contribution that was made."""
    return Receipt("A" * 43, title, None, epsilon, questions, at, URLS[0], fate, window, **crowd)


def _ledgers():
    cases = {
        "nothing": (8.0,),
        "nothing, of a cap with decimals": (1.1,),
        **{f"a receipt that is {fate}": (8.0, receipt(fate=fate)) for fate in FATES},
        **{
            f"epsilon {epsilon!r}": (64.0, receipt(epsilon=epsilon)) for epsilon in (1 / 3, 1.1, 1e-9, 12.00001, 5e-324)
        },
        **{f"title {number}": (8.0, receipt(title)) for number, title in enumerate(TITLES)},
        **{f"a clock at {at}": (8.0, receipt(at=at)) for at in (0.0, 86399.5, 253402300799.0, 253402300800.0, 1e300)},
        "several": (
            4.0,
            receipt(epsilon=0.1, fate="arrived"),
            receipt("Steps", 0.2, (0, 3, 7), fate="expired"),
            receipt("Weather", 0.3, (5,), window="window 3 of 52"),
        ),
        "ten tenths": (1.5, *[receipt(epsilon=0.1)] * 10),
    }
    for name, (cap, *receipts) in cases.items():
        yield ledger_case(name, cap, *receipts)


def ledger_case(name, cap, *receipts):
    """Receipts under a cap, with the text that they are told in."""
    shown = [
        {
            "title": one.title,
            "epsilon": one.epsilon,
            "answers": len(one.questions),
            "at": one.at,
            "fate": one.fate,
            "window": one.window,
            **({"crowd_epsilon": one.crowd_epsilon, "crowd_delta": one.crowd_delta} if one.crowd_epsilon else {}),
        }
        for one in receipts
    ]
    return {"name": name, "cap": cap, "receipts": shown, "text": str(Ledger(tuple(receipts), cap))}


def _said(known, reports):
    seen = set()
    for case in reports:
        campaign = known[case["document"]]
        for report in case["reports"]:
            question = campaign.counted[report["question"]]
            row = case["document"], question.index, report["payload"]
            if row not in seen:
                seen.add(row)
                payload = bytes.fromhex(report["payload"])
                yield {
                    "document": case["document"],
                    "question": question.index,
                    "asked": asked(campaign, question),
                    "payload": report["payload"],
                    "said": said(campaign, question, payload),
                }


def _explained(known):
    for number, (name, campaign) in enumerate(known.items()):
        url = URLS[number % len(URLS)]
        told = explained(campaign, url)
        yield {
            "document": name,
            "url": url,
            "sentences": [sentence(one) for one in told.sentences],
            "policy": sentence(told.policy),
        }


def sentence(one):
    """A sentence in the form in which an app translates it."""
    return {"key": one.key, "parameters": one.parameters, "template": one.template, "text": str(one)}


def _previews(known, records):
    for number, (name, campaign) in enumerate(known.items()):
        chosen = records if name in ("de-onebit", "missing-oue") else (records[0], records[number % len(records)])
        for record in {str(one): one for one in chosen}.values():
            yield _preview(name, campaign, record, campaign.label.classes[number % len(campaign.label.classes)])
    for label in (None, "maybe"):
        yield _preview("binary", known["binary"], records[0], label)
    yield _preview("binary", known["binary"], [], "yes")


def _preview(name, campaign, record, label):
    told = preview_of(campaign, record, label)
    return {
        "document": name,
        "record": record,
        "label": label,
        "problems": [problem.feature for problem in told.problems],
        "questions": [
            {"asked": one.asked, "chance": one.chance, "truth": one.truth, "said": [list(row) for row in one.said]}
            for one in told.questions
        ],
    }
