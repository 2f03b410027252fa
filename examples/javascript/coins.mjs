// Exact random decisions out of 64-bit words: no floating-point number decides one. protocols/vectors/README.md says
// in which order words are taken.
import { createHmac, randomFillSync } from "node:crypto";

export class Coins {
  constructor(next = () => randomFillSync(new BigUint64Array(1))[0]) { // the operating system's words, or a script's
    this.next = next;
  }

  bernoulli(probability) { // probability / 2^64
    return this.next() < probability;
  }

  below(bound) { // uniform in [0, bound), by rejection, never by modulo
    if (bound === 1n) return 0n;
    const bits = (bound - 1n).toString(2).length;
    for (;;) {
      let value = 0n;
      for (let shift = 0; shift < bits; shift += 64) value |= this.next() << BigInt(shift);
      value = BigInt.asUintN(bits, value);
      if (value < bound) return value;
    }
  }

  index(bound) {
    return Number(this.below(BigInt(bound)));
  }

  subset(population, size) { // Floyd's algorithm
    const chosen = new Set();
    for (let last = population - size; last < population; last++) {
      const candidate = this.index(last + 1);
      chosen.add(chosen.has(candidate) ? last : candidate);
    }
    return [...chosen];
  }

  laplace(numerator, denominator) { // Canonne, Kamath, Steinke 2020, Algorithm 2; the fraction in lowest terms
    for (;;) {
      const offset = this.below(numerator);
      if (!this.bernoulliExp(offset, numerator)) continue;
      let periods = 0n;
      while (this.bernoulliExp(1n, 1n)) periods++;
      const magnitude = (offset + numerator * periods) / denominator;
      const negative = this.below(2n) === 1n;
      if (!(negative && magnitude === 0n)) return negative ? -magnitude : magnitude;
    }
  }

  bernoulliExp(numerator, denominator) { // Algorithm 1: true with probability exp(-numerator / denominator)
    let trials = 1n;
    while (this.below(denominator * trials) < numerator) trials++;
    return trials % 2n === 1n;
  }
}

/** Words that are a function of a secret and a message: one HMAC-SHA256 each, the first 8 bytes, little-endian. */
export function keyedWords(secret, ...message) {
  let number = 0;
  return () => {
    const counter = Buffer.alloc(4);
    counter.writeUInt32LE(number++);
    const hash = createHmac("sha256", secret);
    for (const part of [...message, counter]) hash.update(part);
    return hash.digest().readBigUInt64LE();
  };
}
