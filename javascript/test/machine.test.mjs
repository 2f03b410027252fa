import assert from "node:assert/strict";
import { test } from "node:test";
import { judge, retryAfter } from "../dist/device/machine.js";
import { POLICY, RETRY_AFTER_LONGEST } from "../dist/device/policy.js";
import { queued } from "../dist/device/state.js";

const NOW = Date.parse("2026-11-21T12:00:00Z");
const IDS = ["a", "b", "c"];

const entry = (changes = {}) => ({
  reports: IDS.map((id) => ({ id, question: 0, asked: "y", payload: "00", at: NOW, reply: null })),
  attempts: 0,
  due: NOW,
  most: 3,
  expires: NOW + 1e9,
  retries: 0,
  problem: null,
  receipt: { fate: "on-its-way" },
  ...changes,
});
const answer = (status, body = "", headers = {}) => ({
  status,
  body: typeof body === "string" ? body : JSON.stringify(body),
  headers: new Headers(headers),
});
const refusal = (status, code, headers = {}) =>
  answer(status, { code }, { "content-type": "application/problem+json", ...headers });
const after = (told, ids = IDS, changes = {}) => {
  const one = entry(changes);
  judge(one, ids, told, NOW, 0.5, POLICY);
  return one;
};
const left = (one) => queued(one).map(({ id }) => id);
const replies = ({ reports }) => reports.map(({ reply }) => reply);

test("a success takes all off the queue but tells which were refused, and why", () => {
  const found = after(answer(200, { rejected: [["b", "conflicting-report"]] }));
  assert.deepEqual(
    [left(found), replies(found), found.receipt.fate, found.problem],
    [[], ["arrived", "conflicting-report", "arrived"], "arrived", null],
  );
});

test("a 200 that no aggregator sent is no success", () => {
  for (const body of [
    "",
    "<html>",
    "{}",
    "[]",
    '{"rejected": 1}',
    '{"rejected": [["a"]]}',
    '{"rejected": [["a", 1]]}',
    "null",
  ]) {
    const found = after(answer(200, body));
    assert.deepEqual([left(found), found.attempts, replies(found)], [IDS, 1, [null, null, null]], body);
  }
});

test("no answer, and every status that says so, means the same bytes later", () => {
  const later = [
    null,
    ...[401, 403, 408, 425, 429, 500, 502, 503, 504, 302, 511].map((status) => refusal(status, "x")),
    refusal(409, "campaign-not-open"),
    refusal(404, "not-found"),
    answer(404),
    answer(400, "<html>"),
    answer(409),
  ];
  for (const told of later) {
    const found = after(told);
    assert.deepEqual([left(found), found.retries, found.due], [IDS, 1, NOW + 500], JSON.stringify(told));
  }
});

test("waits double, with jitter, up to an hour", () => {
  const waits = Array.from({ length: 20 }, (_, attempts) => after(null, IDS, { attempts }).due - NOW);
  assert.deepEqual(waits.slice(0, 4), [500, 1000, 2000, 4000]);
  assert.equal(waits[19], 1800e3);
});

test("Retry-After is the least wait, in seconds or by the server's own clock, up to its cap", () => {
  assert.equal(after(refusal(503, "x", { "retry-after": "120" })).due, NOW + 120e3);
  assert.equal(after(refusal(503, "x", { "retry-after": "999999999" })).due, NOW + RETRY_AFTER_LONGEST);
  const date = { "retry-after": "Sat, 21 Nov 2026 10:01:00 GMT", date: "Sat, 21 Nov 2026 10:00:00 GMT" };
  assert.equal(retryAfter(answer(503, "", date), NOW), 60e3);
  for (const text of ["soon", "-1", "", "Sat, 21 Nov 2020 10:00:00 GMT"])
    assert.equal(retryAfter(answer(503, "", { "retry-after": text }), NOW), 0, text);
});

test("a campaign that takes no reports any more ends them", () => {
  for (const [status, code] of [
    [404, "unknown-campaign"],
    [409, "campaign-closed"],
    [410, "gone"],
    [451, "x"],
  ]) {
    const found = after(refusal(status, code));
    assert.deepEqual([left(found), replies(found), found.receipt.fate], [[], [code, code, code], "refused"]);
  }
});

test("of what is too large or cannot be taken one is sent at a time, and what cannot be taken alone is dropped", () => {
  for (const status of [413, 400, 422]) {
    const single = after(refusal(status, "no"));
    assert.deepEqual([left(single), single.most, single.retries], [IDS, 1, 0]);
    const alone = after(refusal(status, "no"), ["a"]);
    assert.deepEqual(
      [left(alone), replies(alone)],
      [
        ["b", "c"],
        ["no", null, null],
      ],
    );
  }
});

test("what was withdrawn while it was on its way and arrived, arrived; nothing comes back into the queue", () => {
  const deleted = () => ({ receipt: { fate: "deleted" } });
  const found = after(answer(200, { rejected: [] }), IDS, deleted());
  assert.deepEqual([left(found), replies(found), found.receipt.fate], [[], IDS.map(() => "arrived"), "arrived"]);
  const unknown = after(null, IDS, deleted());
  assert.deepEqual([left(unknown), unknown.receipt.fate], [[], "deleted"]);
});

test("a server's code is kept only where it is one, wherever it stands", () => {
  for (const code of ['x"\n', "", "two words", "\u202eevil", "x".repeat(65), "x".repeat(6 << 20)]) {
    assert.deepEqual(
      replies(after(refusal(409, code))),
      IDS.map(() => "unreadable-code"),
      code.slice(0, 99),
    );
    const named = answer(200, { rejected: [["b", code]] });
    assert.deepEqual(replies(after(named)), ["arrived", "unreadable-code", "arrived"], code.slice(0, 99));
  }
});

test("of a success a report whose window is not open yet stays, and the rest leaves", () => {
  const early = (...ids) => answer(200, { rejected: ids.map((id) => [id, "window-not-open"]) });
  const some = after(early("a", "c"));
  assert.deepEqual([left(some), replies(some), some.problem], [["a", "c"], [null, "arrived", null], null]);
  assert.deepEqual([some.due, some.retries, some.receipt.fate], [NOW, 0, "on-its-way"]);
  const all = after(early("a", "c"), ["a", "c"]);
  assert.deepEqual([left(all), replies(all), all.problem], [IDS, [null, null, null], "window-not-open"]);
  assert.deepEqual([all.due, all.retries, all.attempts], [NOW + 500, 1, 1]);
  const refused = after(answer(200, { rejected: [["a", "window-over"]] }), ["a"]);
  assert.deepEqual(replies(refused), ["window-over", null, null]);
});
