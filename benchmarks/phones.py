#!/usr/bin/env python3
"""Prints the size of a client for phones and its time for a report, beside Python's and JavaScript's.

    python benchmarks/phones.py kotlin|swift

Drawn, randomised and encoded: the same three campaigns of the vectors, one record, on one processor.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from ldp_client import perturb
from ldp_protocols import Campaign, encode_upload

ROOT = Path(__file__).resolve().parents[1]
KOTLIN, SWIFT = ROOT / "build" / "kotlin", ROOT / "build" / "swift"
DOCUMENTS = ROOT / "protocols" / "vectors" / "documents.json"
BUNDLE = ROOT / "javascript" / "dist" / "ldp-bayes-client.min.js"
NAMES = ["de-onebit", "oue-sign", "ss-laplace"]
RECORD = {"colour": "green", "größe": 0.25, "hours": 41.5}
SCRIPT = """
import { readFileSync } from "node:fs";
const { parseCampaign, perturb, encodeUpload, uploadLength } = await import(process.argv[1]);
const { accepted } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const record = { colour: "green", größe: 0.25, hours: 41.5 };
for (const name of ["de-onebit", "oue-sign", "ss-laplace"]) {
  const campaign = parseCampaign(accepted.find((one) => one.name === name).document);
  let each = 0;
  for (let run = 0; run < 2; run++) {
    const begun = process.hrtime.bigint();
    for (let i = 0; i < 20000; i++) encodeUpload(perturb(campaign, record, "yes"), uploadLength(campaign));
    each = Number(process.hrtime.bigint() - begun) / 2e7;
  }
  console.log(name.padEnd(12), each.toFixed(1), "us a report");
}
"""


def kotlin() -> None:
    jar = KOTLIN / "ldp-bayes-client.jar"
    print(f"Kotlin: {jar.stat().st_size:,} bytes of jar", flush=True)
    path = os.pathsep.join(map(str, KOTLIN.glob("*.jar")))
    subprocess.run(["java", "-cp", path, "org.example.ldpbayes.MainKt", "speed", DOCUMENTS], check=True)


def swift() -> None:
    library = SWIFT / "libLdpBayes.so"
    print(f"Swift: {library.stat().st_size:,} bytes of stripped library", flush=True)
    subprocess.run([SWIFT / "checks", "speed", DOCUMENTS], check=True)


def python() -> None:
    print("Python", flush=True)
    accepted = {case["name"]: case for case in json.loads(DOCUMENTS.read_text(encoding="utf-8"))["accepted"]}
    for name in NAMES:
        campaign = Campaign.parse(accepted[name]["document"].encode())
        begun = time.perf_counter()
        for _ in range(5000):
            encode_upload(perturb(campaign, RECORD, "yes"), campaign)
        print(f"{name:12} {(time.perf_counter() - begun) / 5000 * 1e6:.1f} us a report", flush=True)


def javascript() -> None:
    node = shutil.which("node")
    if node is None or not BUNDLE.is_file():
        print("JavaScript: node or javascript/dist is missing; make javascript builds it")
        return
    print("JavaScript", flush=True)
    subprocess.run([node, "--input-type=module", "--eval", SCRIPT, BUNDLE, DOCUMENTS], check=True)


def main() -> None:
    {"kotlin": kotlin, "swift": swift}[sys.argv[1]]()
    python()
    javascript()


if __name__ == "__main__":
    main()
