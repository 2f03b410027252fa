// The hook: which step there is, asked for once for each campaign, and what a person's yes, no and answer do.
import assert from "node:assert/strict";
import { register } from "node:module";
import { test } from "node:test";

const stand_in = new URL("./support/one_component.mjs", import.meta.url).href;
register(
  "data:text/javascript," +
    encodeURIComponent(
      `export const resolve = (name, context, next) => next(name === "react" ? ${JSON.stringify(stand_in)} : name, context);`,
    ),
);
const { render, unmount } = await import(stand_in);
const { useCampaign } = await import("../dist/react/index.js");

const settled = () => new Promise((done) => setImmediate(done));
const STEP = { step: "nothing", reason: "answered" };

/** A campaign whose calls are written down, and answer or fail as they are told to. */
function joined(answers) {
  const calls = [];
  const method =
    (name) =>
    async (...given) => {
      calls.push([name, ...given]);
      const answer = answers[name];
      if (answer instanceof Error) throw answer;
      return answer;
    };
  const names = ["nextStep", "fetch", "decide", "obtainToken", "contribute"];
  return { calls, answers, ...Object.fromEntries(names.map((name) => [name, method(name)])) };
}

async function shown(campaign) {
  unmount();
  const first = render(() => useCampaign(campaign));
  await settled();
  return [first, () => render(() => useCampaign(campaign))];
}
const told = ({ step, reason, campaign, problem }) => ({ step, reason, campaign, problem });
const UNKNOWN = { step: undefined, reason: null, campaign: undefined, problem: undefined };

test("nothing is claimed before it is known, and a campaign is fetched to be shown alone", async () => {
  for (const [step, reason, campaign] of [
    ["ask", null, "the document"],
    ["token", null, undefined],
    ["contribute", null, undefined],
    ["nothing", "answered", undefined],
  ]) {
    const one = joined({ nextStep: { step, reason }, fetch: "the document" });
    const [first, now] = await shown(one);
    assert.deepEqual(told(first), UNKNOWN);
    assert.deepEqual(told(now()), { step, reason, campaign, problem: undefined });
    now();
    await settled();
    assert.deepEqual(
      one.calls,
      step === "ask" ? [["nextStep"], ["fetch"]] : [["nextStep"]],
      "once, however often drawn",
    );
  }
});

test("another campaign is looked at anew", async () => {
  const [one, other] = [joined({ nextStep: STEP }), joined({ nextStep: { step: "contribute", reason: null } })];
  await shown(one);
  render(() => useCampaign(other));
  await settled();
  assert.equal(render(() => useCampaign(other)).step, "contribute");
  assert.deepEqual([one.calls, other.calls], [[["nextStep"]], [["nextStep"]]]);
});

test("a yes and a no are decided once, and what comes next is what deciding says", async () => {
  for (const [method, word] of [
    ["agree", true],
    ["decline", false],
  ]) {
    const one = joined({
      nextStep: { step: "ask", reason: null },
      fetch: "it",
      decide: { step: "token", reason: "r" },
    });
    const [, now] = await shown(one);
    one.calls.length = 0;
    assert.equal(await now()[method](), undefined);
    assert.deepEqual(one.calls, [["decide", word]]);
    assert.deepEqual(told(now()), { step: "token", reason: "r", campaign: undefined, problem: undefined });
  }
});

test("an answer and a token are given to the device, and what comes next is asked for afterwards", async () => {
  const one = joined({ nextStep: STEP, contribute: "the receipt", obtainToken: undefined });
  const [, now] = await shown(one);
  one.calls.length = 0;
  assert.equal(await now().contribute({ age: 3 }, "yes"), "the receipt");
  assert.deepEqual(one.calls, [["contribute", { age: 3 }, "yes"], ["nextStep"]]);
  one.calls.length = 0;
  const issue = () => {};
  await now().obtainToken(issue);
  assert.deepEqual(one.calls, [["obtainToken", issue], ["nextStep"]]);
});

test("what fails is told beside what was known, throws nothing, and is over with the next success", async () => {
  const failure = new Error("offline");
  const one = joined({ nextStep: { step: "ask", reason: null }, fetch: "it", contribute: failure, decide: failure });
  const [, now] = await shown(one);
  for (const call of [() => now().contribute({}, "yes"), () => now().agree(), () => now().decline()]) {
    assert.equal(await call(), undefined);
    assert.deepEqual(told(now()), { step: "ask", reason: null, campaign: "it", problem: failure });
  }
  one.answers.decide = STEP;
  await now().agree();
  assert.deepEqual(told(now()), { ...STEP, campaign: undefined, problem: undefined });
  const [, never] = await shown(joined({ nextStep: failure }));
  assert.deepEqual(told(never()), { ...UNKNOWN, problem: failure });
});
