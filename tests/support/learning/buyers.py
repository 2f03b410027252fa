"""Who buys? A table of 120 people and its draft, for tests of the commands; and a shell to run these in."""

import json

from drafts import draft, number, text

from ldp_simulations.__main__ import main

FEATURES = (text("colour", "red", "blue"), number("size", 0, 60))
LABEL = {"name": "sold", "classes": ["yes", "no"]}
DRAFT = draft(*FEATURES, title="Who buys?", label=LABEL, privacy={"epsilon": 3.0})


def write_table(path):
    """Whoever sees red buys."""
    rows = [f"{c},{s},{'yes' if c == 'red' else 'no'}" for c in ("red", "blue") for s in range(60)]
    path.write_text("colour,size,sold\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def write_draft(path, draft=DRAFT):
    """Its draft."""
    path.write_text(json.dumps(draft), encoding="utf-8")
    return path


def run(capsys, *arguments):
    """Exit code and what was printed on both channels."""
    try:
        code = main([str(argument) for argument in arguments])
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    return code, out, err
