// Exact random decisions out of 64-bit words: no floating-point number decides one. The order in which words are taken is
// that of protocols/vectors/README.md.
import { littleEndian } from "../bytes.js";
import { ensure } from "../errors.js";
import { hmac } from "./sha256.js";

export type Words = () => bigint;

export class Coins {
  /** `next` gives independent words, uniform on [0, 2^64). */
  constructor(readonly next: Words) {}

  /** True with probability `probability` / 2^64. */
  bernoulli(probability: bigint): boolean {
    return this.next() < probability;
  }

  /** Uniform in [0, bound), by rejection, never by modulo; 1 takes no word. */
  below(bound: bigint): bigint {
    if (bound === 1n) return 0n;
    const bits = (bound - 1n).toString(2).length;
    for (;;) {
      let value = 0n;
      for (let shift = 0; shift < bits; shift += 64) value |= this.next() << BigInt(shift);
      value = BigInt.asUintN(bits, value);
      if (value < bound) return value;
    }
  }

  index(bound: number): number {
    return Number(this.below(BigInt(bound)));
  }

  /** A uniformly random subset of `size` of the numbers below `population` (Floyd's algorithm). */
  subset(population: number, size: number): number[] {
    const chosen = new Set<number>();
    for (let last = population - size; last < population; last++) {
      const candidate = this.index(last + 1);
      chosen.add(chosen.has(candidate) ? last : candidate);
    }
    return [...chosen];
  }
}

/** A secret's 32 bytes, or anything else's, from the platform's generator. Where there is none, nothing is drawn. */
export function randomBytes(size: number): Uint8Array {
  ensure(globalThis.crypto?.getRandomValues, "no-randomness");
  return crypto.getRandomValues(new Uint8Array(size));
}

const BLOCK = 64;

/** The platform's words, drawn in blocks of 64; what is left of a block is dropped with the coins. */
export function systemCoins(): Coins {
  let block: bigint[] = [];
  return new Coins(() => {
    if (!block.length) block = [...new BigUint64Array(randomBytes(8 * BLOCK).buffer)];
    return block.pop()!;
  });
}

/** Words that are a function of a secret and a message: one HMAC-SHA256 each, its first 8 bytes, little-endian. */
export function keyedCoins(secret: Uint8Array, ...message: readonly Uint8Array[]): Coins {
  let number = 0;
  return new Coins(() =>
    new DataView(hmac(secret, ...message, littleEndian(number++, 4)).buffer).getBigUint64(0, true),
  );
}
