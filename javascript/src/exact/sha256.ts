// SHA-256 (FIPS 180-4) and HMAC (RFC 2104), synchronous: crypto.subtle is neither, and is missing in React Native and on
// pages without TLS.
import { concat } from "../bytes.js";

let constants: number[] | undefined; // 64 cube roots of primes, then 8 square roots, of each the first 32 fractional bits

function roots(): number[] {
  const primes: number[] = [];
  for (let n = 2; primes.length < 64; n++) if (primes.every((prime) => n % prime)) primes.push(n);
  const fraction = (root: number): number => ((root % 1) * 2 ** 32) | 0;
  return [...primes.map((n) => fraction(Math.cbrt(n))), ...primes.slice(0, 8).map((n) => fraction(Math.sqrt(n)))];
}

const rotate = (word: number, by: number): number => (word >>> by) | (word << (32 - by));

function compress(state: Int32Array, view: DataView, at: number, k: readonly number[], words: Int32Array): void {
  for (let i = 0; i < 16; i++) words[i] = view.getInt32(at + 4 * i);
  for (let i = 16; i < 64; i++) {
    const [w, v] = [words[i - 15]!, words[i - 2]!];
    const low = rotate(w, 7) ^ rotate(w, 18) ^ (w >>> 3);
    words[i] = low + words[i - 16]! + words[i - 7]! + (rotate(v, 17) ^ rotate(v, 19) ^ (v >>> 10));
  }
  let a = state[0]!, b = state[1]!, c = state[2]!, d = state[3]!, e = state[4]!, f = state[5]!, g = state[6]!, h = state[7]!;
  for (let i = 0; i < 64; i++) {
    const t = (h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + k[i]! + words[i]!) | 0;
    const s = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = (d + t) | 0, d = c, c = b, b = a, a = (t + s) | 0;
  }
  [a, b, c, d, e, f, g, h].forEach((word, i) => (state[i]! += word));
}

export function sha256(message: Uint8Array): Uint8Array {
  const k = (constants ??= roots());
  const padded = new Uint8Array(((message.length + 72) >> 6) << 6);
  padded.set(message);
  padded[message.length] = 128;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, message.length / 2 ** 29);
  view.setUint32(padded.length - 4, message.length << 3);
  const [state, words] = [Int32Array.from(k.slice(64)), new Int32Array(64)];
  for (let at = 0; at < padded.length; at += 64) compress(state, view, at, k, words);
  const digest = new Uint8Array(32);
  state.forEach((word, i) => new DataView(digest.buffer).setInt32(4 * i, word));
  return digest;
}

export function hmac(key: Uint8Array, ...message: readonly Uint8Array[]): Uint8Array {
  const block = new Uint8Array(64);
  block.set(key.length > 64 ? sha256(key) : key);
  const inner = sha256(concat(block.map((byte) => byte ^ 0x36), ...message));
  return sha256(concat(block.map((byte) => byte ^ 0x5c), inner));
}
