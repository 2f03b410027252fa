// Campaigns for tests, from the vectors: documents that the Python package compiled.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { Device } from "../../dist/node/index.js";
import { FakeAggregator } from "../../dist/testing/index.js";

const read = (name) =>
  JSON.parse(readFileSync(new URL(`../../../protocols/vectors/${name}.json`, import.meta.url), "utf8"));

export const documents = Object.fromEntries(
  read("documents").accepted.map(({ name, document, id }) => [name, { document, id }]),
);
export const models = Object.fromEntries(
  read("training").accepted.map(({ document, model, predictions }) => [document, { model, predictions }]),
);
export const refusedModels = read("training").refused;
export const URL_OF_TESTS = "http://127.0.0.1:8080";
export const RECORD = { colour: "green", größe: 0.25, hours: 41.5 };

/** An aggregator that has every campaign of the vectors. */
export function aggregator() {
  const made = new FakeAggregator();
  for (const { document, id } of Object.values(documents)) made.documents.set(id, document);
  return made;
}

/** A device whose aggregator is `server`. */
export function deviceOn(storage, server, options = {}) {
  return new Device(storage, { maxTotalEpsilon: 10, identity: "per installation", fetch: server.fetch, ...options });
}

export const refuses = (code, promise) =>
  assert.rejects(promise, (error) => error.code === code || assert.fail(String(error.stack)));

/** Asks for the classifier, and waits for the newest model, which is fetched for the next call. */
export async function renewed(campaign) {
  await campaign.classifier();
  await campaign.models.renewing;
}

/** The issuer of RFC 9578's vector, who signs for anybody. */
export const PUBLISHED = JSON.parse(
  readFileSync(new URL("../../../tests/support/rfc9578.json", import.meta.url), "utf8"),
);
const MODULUS = BigInt(`0x${PUBLISHED.n}`);
export const issuer = { name: "issuer.example", key: Buffer.from(PUBLISHED.pkS, "hex").toString("base64url") };

/** The TokenResponse to a TokenRequest. */
export function sign(request) {
  let [base, signed] = [BigInt(`0x${Buffer.from(request).subarray(3).toString("hex")}`), 1n];
  for (const bit of [...BigInt(`0x${PUBLISHED.d}`).toString(2)].reverse()) {
    if (bit === "1") signed = (signed * base) % MODULUS;
    base = (base * base) % MODULUS;
  }
  return new Uint8Array(Buffer.from(signed.toString(16).padStart(512, "0"), "hex"));
}

/** A campaign like one of the vectors, with other members. */
export function changed(changes, of = "all") {
  const document = JSON.stringify({ ...JSON.parse(documents[of].document), ...changes });
  return { document, id: createHash("sha256").update(document).digest("base64url") };
}
