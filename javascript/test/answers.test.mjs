// The table of answers that all clients are held to: protocols/vectors/answers.json.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { hasExpired, judge } from "../dist/device/machine.js";
import { POLICY } from "../dist/device/policy.js";
import { queued } from "../dist/device/state.js";

const { cases } = JSON.parse(readFileSync(new URL("../../protocols/vectors/answers.json", import.meta.url), "utf8"));
const NOW = Date.UTC(2027, 0, 15);
const DAY = 864e5;

function answerOf({ status, headers = {}, body, rejected, code }, ids) {
  if (!status) return null;
  if (rejected) {
    const pairs = ids.map((id) => [id, rejected[Number(id)]]).filter(([, told]) => told);
    return { status, headers: new Headers(headers), body: JSON.stringify({ rejected: pairs }) };
  }
  if (body !== undefined) return { status, headers: new Headers(headers), body };
  const typed = new Headers({ ...headers, "content-type": "application/problem+json" });
  return { status, headers: typed, body: JSON.stringify({ code }) };
}

for (const { name, reports, answers, left, wait = 0, split = false, expires = 30 * 86400, kept, given_up } of cases) {
  test(`an answer means this: ${name}`, () => {
    const all = Array.from({ length: reports }, (_, number) => ({ id: String(number), at: NOW, reply: null }));
    const entry = { reports: all, attempts: 0, due: NOW, expires: NOW + expires * 1e3, retries: 0, problem: null };
    entry.receipt = { fate: "on-its-way" };
    let now = NOW;
    const next = () => queued(entry).slice(0, entry.most);
    for (const told of answers) {
      now += told.after * 1e3;
      const ids = next().map(({ id }) => id);
      judge(entry, ids, answerOf(told, ids), now, 0.5, POLICY);
    }
    assert.deepEqual(
      all.map(({ reply }) => reply ?? "waits"),
      left,
    );
    assert.equal((entry.due - now) / 1e3, wait);
    assert.equal(next().length < queued(entry).length, split);
    if (kept !== undefined) assert.ok(!hasExpired(entry, now + kept * 1e3));
    if (given_up !== undefined) assert.ok(hasExpired(entry, now + given_up * 1e3));
  });
}

test("the table has every kind of end", () => {
  const ends = new Set(cases.flatMap(({ left }) => left));
  for (const end of ["arrived", "waits", "campaign-closed", "campaign-deleted", "conflicting-report"])
    assert.ok(ends.has(end));
  assert.ok(cases.length > 200);
  assert.ok(cases.some(({ given_up }) => given_up * 1e3 > 6 * DAY));
});
