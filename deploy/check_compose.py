"""Checks deploy/compose.yaml: against the schema of the format, and that what it names is there.

check_compose.py SCHEMA.json
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import jsonschema
import yaml

DEPLOY = Path(__file__).resolve().parent


def main() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    schema = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    jsonschema.Draft7Validator(schema).validate(compose)
    targets = set(re.findall(r"^FROM \S+ AS (\w+)$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE))
    wrong = []
    for name, service in compose["services"].items():
        if "build" in service and service["build"]["target"] not in targets:
            wrong.append(f"{name}: deploy/Dockerfile has no target {service['build']['target']}")
        for volume in service.get("volumes", []):
            source = re.sub(r"\$\{[^}]*\}", "$", volume).partition(":")[0]
            is_there = (DEPLOY / source).exists() if source.startswith(".") else source in compose["volumes"]
            if source != "$" and not is_there:
                wrong.append(f"{name}: {source} is neither a file here nor a volume")
        wrong += [
            f"{name}: there is no service {one}"
            for one in service.get("depends_on", [])
            if one not in compose["services"]
        ]
        wrong += [
            f"{name}: there is no network {one}"
            for one in service.get("networks", [])
            if one not in compose["networks"]
        ]
    if wrong:
        raise SystemExit("\n".join(wrong))
    print(f"INFO {DEPLOY / 'compose.yaml'} is sound")


if __name__ == "__main__":
    main()
