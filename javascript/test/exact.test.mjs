// Exact numbers at their boundaries: what decides about a loss, a cap, and a draw.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createHash, createHmac } from "node:crypto";
import { hex } from "../dist/bytes.js";
import { fits } from "../dist/device/state.js";
import { Coins } from "../dist/exact/coins.js";
import { exact, floatUp, logUp, nextUp, within } from "../dist/exact/rationals.js";
import { hmac, sha256 } from "../dist/exact/sha256.js";

const ONE = 1n << 64n;

test("a loss is within an epsilon where it is above neither its text nor its double", () => {
  for (const [text, double] of [
    [[1n, 10n], 0.1], // the double is above the text
    [[3n, 10n], 0.3], // the text is above the double
  ]) {
    const [n, d] = exact(double);
    const least = n * text[1] < text[0] * d ? [n, d] : text;
    const most = least === text ? [n, d] : text;
    assert.ok(within(least, double));
    assert.ok(!within(most, double));
    assert.ok(!within([least[0] * 10n ** 30n + 1n, least[1] * 10n ** 30n], double));
  }
  assert.ok(within([1n, 1n], 1));
  assert.ok(!within([10n ** 30n + 1n, 10n ** 30n], 1));
  assert.ok(within([25n * 10n ** 19n, 1n], 2.5e20));
});

test("a loss is told by the least double that is not below it", () => {
  for (const [ratio, told] of [
    [[0n, 1n], 0],
    [[1n, 1n], 1],
    [[1n, 10n], 0.1],
    [[3n, 10n], 0.30000000000000004],
    [[1n, 3n], 0.33333333333333337],
    [[2n, 3n], 0.6666666666666667],
    [[10n ** 30n + 1n, 10n ** 30n], 1.0000000000000002],
    [[33n, 10n], 3.3000000000000003],
    [exact(2.0000000000000004), 2.0000000000000004],
  ])
    assert.equal(floatUp(ratio), told, String(ratio));
  assert.deepEqual([nextUp(1), nextUp(0.5), nextUp(4)], [1.0000000000000002, 0.5000000000000001, 4.000000000000001]);
});

test("a logarithm is bounded from above, by less than 2^-120", () => {
  const LN_2 = 6931471805599453094172321214581765680755n; // of 10^40
  const [l, unit] = logUp(2n, 1n);
  assert.equal(unit, 1n << 128n);
  assert.ok(l * 10n ** 40n >= LN_2 * unit);
  assert.ok((l - (1n << 8n)) * 10n ** 40n < LN_2 * unit);
  assert.deepEqual([logUp(1n, 1n)[0], logUp(1n, 2n)[0], logUp(ONE + 1n, ONE)[0] > 0n], [0n, 0n, true]);
  assert.equal(logUp(10n ** 40n, 1n)[0], logUp(10n ** 41n, 10n)[0]);
});

test("a cap of all campaigns is held to the last bit", () => {
  const receipts = (...epsilons) => epsilons.map((epsilon) => ({ epsilon }));
  assert.ok(fits([], exact(1), 1));
  assert.ok(fits(receipts(1, 0.5), exact(0.5), 2));
  assert.ok(!fits(receipts(1e-17), exact(1), 1));
  assert.ok(!fits(receipts(1, 1e-17), exact(1), 2));
  assert.ok(!fits(receipts(...Array(9).fill(0.1)), exact(0.1), 1), "ten doubles of 0.1 are more than 1");
  assert.ok(fits(receipts(...Array(9).fill(0.1)), exact(0.1), nextUp(1)));
});

test("the first campaign fits where all that an app allows is what that promises, also where the double is above the decimal", () => {
  for (const [units, epsilon] of [
    [1n, 0.1],
    [11n, 1.1],
  ]) {
    assert.ok(floatUp([units, 10n]) === epsilon && fits([], [units, 10n], epsilon));
    assert.ok(!fits([], [10n ** 20n * units + 1n, 10n ** 21n], epsilon));
    assert.ok(!fits([{ epsilon: 5e-324 }], [units, 10n], epsilon));
  }
});

test("a draw takes no word more than the bits below its bound, and is drawn again where it reaches it", () => {
  for (const [bound, words, drawn] of [
    [1n, [], 0n],
    [2n, [ONE - 1n], 1n],
    [ONE, [ONE - 1n], ONE - 1n],
    [ONE + 1n, [1n, 1n, 0n, 1n], ONE],
    [ONE * ONE, [5n, 7n], 7n * ONE + 5n],
    [3n, [3n, 7n, 2n], 2n],
  ]) {
    const left = [...words];
    assert.equal(new Coins(() => left.shift()).below(bound), drawn);
    assert.equal(left.length, 0);
  }
});

test("hashes are those of the platform for messages and keys of every length", () => {
  const bytes = Uint8Array.from({ length: 140_000 }, (_, place) => (place * 7919) >> 3);
  for (const length of [0, 1, 54, 55, 56, 57, 63, 64, 65, 119, 120, 128, 8191, 8192, 65_535, 65_536, 65_537, 140_000]) {
    const message = bytes.slice(0, length);
    assert.equal(hex(sha256(message)), createHash("sha256").update(message).digest("hex"), String(length));
  }
  for (const length of [0, 1, 31, 32, 33, 48, 63, 64, 65, 100, 200]) {
    const key = bytes.slice(0, length);
    const wanted = createHmac("sha256", key).update(bytes.slice(0, 70)).digest("hex");
    assert.equal(hex(hmac(key, bytes.slice(0, 30), bytes.slice(30, 70))), wanted, String(length));
  }
});
