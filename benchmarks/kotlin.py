#!/usr/bin/env python3
"""Prints the size of the Kotlin client and its time for a report, beside Python's and JavaScript's.

    python benchmarks/kotlin.py

Drawn, randomised and encoded: the same three campaigns of the vectors, one record, on one processor.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

from ldp_client import perturb
from protocols import Campaign, encode_upload

ROOT = Path(__file__).resolve().parents[1]
BUILT = ROOT / "build" / "kotlin"
DOCUMENTS = ROOT / "protocols" / "vectors" / "documents.json"
BUNDLE = ROOT / "javascript" / "dist" / "ldp-bayes-client.min.js"
NAMES = ["de-onebit", "oue-sign", "ss-laplace"]
RECORD = {"colour": "green", "größe": 0.25, "hours": 41.5}
SCRIPT = """
import { readFileSync } from "node:fs";
const { parseCampaign, perturb, encodeUpload } = await import(process.argv[1]);
const { accepted } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const record = { colour: "green", größe: 0.25, hours: 41.5 };
for (const name of ["de-onebit", "oue-sign", "ss-laplace"]) {
  const campaign = parseCampaign(accepted.find((one) => one.name === name).document);
  let each = 0;
  for (let run = 0; run < 2; run++) {
    const begun = process.hrtime.bigint();
    for (let i = 0; i < 20000; i++) encodeUpload(perturb(campaign, record, "yes"));
    each = Number(process.hrtime.bigint() - begun) / 2e7;
  }
  console.log(name.padEnd(12), each.toFixed(1), "us a report");
}
"""


def python() -> None:
    accepted = {case["name"]: case for case in json.loads(DOCUMENTS.read_text(encoding="utf-8"))["accepted"]}
    for name in NAMES:
        campaign = Campaign.parse(accepted[name]["document"].encode())
        begun = time.perf_counter()
        for _ in range(5000):
            encode_upload(perturb(campaign, RECORD, "yes"), campaign)
        print(f"{name:12} {(time.perf_counter() - begun) / 5000 * 1e6:.1f} us a report")


def main() -> None:
    jar = BUILT / "ldp-bayes-client.jar"
    print(f"Kotlin: {jar.stat().st_size:,} bytes of jar", flush=True)
    path = os.pathsep.join(map(str, BUILT.glob("*.jar")))
    subprocess.run(["java", "-cp", path, "ldpbayes.MainKt", "speed", DOCUMENTS], check=True)
    print("Python", flush=True)
    python()
    node = shutil.which("node")
    if node is None or not BUNDLE.is_file():
        print("JavaScript: node or javascript/dist is missing; make javascript builds it")
        return
    print("JavaScript", flush=True)
    subprocess.run([node, "--input-type=module", "--eval", SCRIPT, BUNDLE, DOCUMENTS], check=True)


if __name__ == "__main__":
    main()
