import assert from "node:assert/strict";
import { test } from "node:test";
import { judge, retryAfter } from "../dist/device/machine.js";
import { POLICY } from "../dist/device/policy.js";

const NOW = Date.parse("2026-11-21T12:00:00Z");
const IDS = ["a", "b", "c"];

const entry = (changes = {}) => ({
  queue: IDS.map((id) => ({ id, question: 0, asked: "y", payload: "00" })),
  sent: [],
  attempts: 0,
  due: NOW,
  most: 3,
  expires: NOW + 1e9,
  retries: 0,
  dropped: {},
  problem: null,
  receipt: { fate: "on-its-way" },
  ...changes,
});
const answer = (status, body = "", headers = {}) => ({
  status,
  body: typeof body === "string" ? body : JSON.stringify(body),
  header: (name) => headers[name] ?? null,
});
const refusal = (status, code, headers = {}) =>
  answer(status, { code }, { "content-type": "application/problem+json", ...headers });
const after = (told, ids = IDS, changes = {}) => {
  const one = entry(changes);
  judge(one, ids, told, NOW, 0.5, POLICY);
  return one;
};
const left = ({ queue }) => queue.map(({ id }) => id);

test("a success takes all off the queue but tells which were refused, and why", () => {
  const { queue, sent, dropped, receipt, problem } = after(answer(200, { rejected: [["b", "conflicting-report"]] }));
  assert.deepEqual(
    [queue.length, sent.map(({ id }) => id), dropped, receipt.fate, problem],
    [0, ["a", "c"], { "conflicting-report": 1 }, "arrived", null],
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
    assert.deepEqual([left(found), found.attempts, found.sent], [IDS, 1, []], body);
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
  assert.equal(after(refusal(503, "x", { "retry-after": "999999999" })).due, NOW + POLICY.retryAfterLongest);
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
    assert.deepEqual([left(found), found.dropped, found.receipt.fate], [[], { [code]: 3 }, "refused"]);
  }
});

test("what is too large or cannot be taken is halved until it is alone, and then dropped", () => {
  for (const status of [413, 400, 422]) {
    const half = after(refusal(status, "no"));
    assert.deepEqual([left(half), half.most, half.retries], [IDS, 2, 0]);
    const alone = after(refusal(status, "no"), ["a"]);
    assert.deepEqual([left(alone), alone.dropped], [["b", "c"], { no: 1 }]);
  }
});

test("what was withdrawn while it was on its way and arrived, arrived; nothing comes back into the queue", () => {
  const found = after(answer(200, { rejected: [] }), IDS, { queue: [], receipt: { fate: "deleted" } });
  assert.deepEqual([found.queue, found.sent, found.receipt.fate], [[], [], "arrived"]);
  assert.equal(after(null, IDS, { queue: [], receipt: { fate: "deleted" } }).receipt.fate, "deleted");
});

test("a server's code becomes a key only where it is one", () => {
  assert.deepEqual(after(refusal(409, 'x"\n')).dropped, { "unreadable-code": 3 });
});
