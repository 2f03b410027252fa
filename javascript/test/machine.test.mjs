import assert from "node:assert/strict";
import { test } from "node:test";
import { failed, judge, retryAfter } from "../dist/device/machine.js";
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
    refusal(404, "unknown-campaign"),
    refusal(409, "campaign-closing"),
    refusal(503, "clock-unsettled"),
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

const DAY = 864e5;
const CLOSED = refusal(409, "campaign-closed");
const OVER = answer(200, { rejected: IDS.map((id) => [id, "window-over"]) });
const told = (one, ...words) => {
  for (const [word, at] of words) judge(one, left(one), word, NOW + at, 0.5, POLICY);
  return [left(one).length, one.receipt.fate];
};

test("a campaign that takes no reports any more ends them once it was heard twice, a day apart", () => {
  for (const [word, code] of [
    [CLOSED, "campaign-closed"],
    [refusal(404, "no-campaign"), "no-campaign"],
    [refusal(451, "x"), "x"],
    [OVER, "window-over"],
  ]) {
    const one = entry();
    assert.deepEqual(told(one, [word, 0], [word, DAY - 1]), [3, "on-its-way"], code);
    assert.deepEqual([one.problem, one.retries, one.due], [code, 2, NOW + DAY - 1 + 6 * 36e5]);
    assert.deepEqual(told(one, [word, DAY]), [0, "refused"], code);
    assert.deepEqual(replies(one), [code, code, code]);
  }
  const gone = after(refusal(410, "campaign-deleted"));
  assert.deepEqual([left(gone), gone.receipt.fate], [[], "refused"]);
});

test("what is heard between two final words makes the second a first one, and so does a clock set back", () => {
  for (const between of [
    [refusal(409, "campaign-closing"), DAY / 2],
    [refusal(503, "clock-unsettled"), DAY / 2],
    [refusal(404, "unknown-campaign"), DAY / 2],
    [answer(200, { rejected: IDS.map((id) => [id, "campaign-closing"]) }), DAY / 2],
    [CLOSED, -DAY],
  ]) {
    const from = between[1] < 0 ? -DAY : DAY;
    const one = entry();
    assert.deepEqual(told(one, [CLOSED, 0], between, [CLOSED, from], [CLOSED, from + DAY - 1]), [3, "on-its-way"]);
    assert.deepEqual(told(one, [CLOSED, from + DAY]), [0, "refused"]);
  }
  const silent = entry();
  assert.deepEqual(told(silent, [CLOSED, 0], [null, DAY / 2], [failed("not-installed"), DAY / 2]), [3, "on-its-way"]);
  assert.deepEqual(told(silent, [CLOSED, DAY]), [0, "refused"]);
});

test("of a success those leave that arrived, and a final word is heard twice for the rest", () => {
  const one = entry();
  judge(one, IDS, answer(200, { rejected: [["b", "window-over"]] }), NOW, 0.5, POLICY);
  assert.deepEqual([left(one), replies(one), one.due], [["b"], ["arrived", null, "arrived"], NOW]);
  const word = answer(200, { rejected: [["b", "window-over"]] });
  assert.deepEqual(told(one, [word, DAY], [word, 2 * DAY]), [0, "arrived"]);
  assert.deepEqual(replies(one), ["arrived", "window-over", "arrived"]);
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
      replies(after(refusal(410, code))),
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
});
