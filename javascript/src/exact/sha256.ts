// SHA-256 (FIPS 180-4) and HMAC (RFC 2104), synchronous: crypto.subtle is neither, and is missing in React Native and on
// pages without TLS.
import { concat } from "../bytes.js";

let constants: Int32Array | undefined; // 64 cube roots of primes, then 8 square roots, of each the first 32 fractional bits (an Int32Array drops what is above)

function roots(): Int32Array {
  const primes: number[] = [];
  for (let n = 2; primes.length < 64; n++) if (primes.every((prime) => n % prime)) primes.push(n);
  return Int32Array.from([...primes.map(Math.cbrt), ...primes.slice(0, 8).map(Math.sqrt)], (root) => root * 2 ** 32);
}

type Eight = [number, number, number, number, number, number, number, number];

const rotate = (word: number, by: number): number => (word >>> by) | (word << -by);

export function sha256(message: Uint8Array): Uint8Array {
  const k = (constants ??= roots());
  const view = new DataView(new ArrayBuffer(((message.length + 72) >> 6) << 6));
  const padded = new Uint8Array(view.buffer);
  padded.set(message);
  padded[message.length] = 128;
  view.setBigUint64(padded.length - 8, 8n * BigInt(message.length));
  const [state, words] = [k.slice(64), new Int32Array(64)];
  for (let at = 0; at < padded.length; at += 64) {
    let [a, b, c, d, e, f, g, h] = state as unknown as Eight;
    for (let i = 0; i < 64; i++) {
      if (i < 16) words[i] = view.getInt32(at + 4 * i);
      else {
        const w = words[i - 15]!;
        const v = words[i - 2]!;
        words[i] =
          (rotate(w, 7) ^ rotate(w, 18) ^ (w >>> 3)) +
          words[i - 16]! +
          words[i - 7]! +
          (rotate(v, 17) ^ rotate(v, 19) ^ (v >>> 10));
      }
      const t = (h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + (g ^ (e & (f ^ g))) + k[i]! + words[i]!) | 0;
      const s = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) | (c & (a | b)));
      [a, b, c, d, e, f, g, h] = [(t + s) | 0, a, b, c, (d + t) | 0, e, f, g];
    }
    [a, b, c, d, e, f, g, h].forEach((word, i) => (state[i]! += word));
  }
  state.forEach((word, i) => view.setInt32(4 * i, word)); // the last block is in the state by now
  return padded.slice(0, 32);
}

export function hmac(key: Uint8Array, ...message: readonly Uint8Array[]): Uint8Array {
  const block = new Uint8Array(64);
  block.set(key.length > 64 ? sha256(key) : key);
  const keyed = (by: number, ...parts: readonly Uint8Array[]): Uint8Array =>
    sha256(
      concat(
        block.map((byte) => byte ^ by),
        ...parts,
      ),
    );
  return keyed(0x5c, keyed(0x36, ...message));
}
