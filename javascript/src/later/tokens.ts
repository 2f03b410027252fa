// The device's part of a blind signature (RFC 9474, RSABSSA-SHA384-PSS-Deterministic), by which an issuer signs the token
// of an answer without seeing it (RFC 9578, token type 2): protocols/ldp_protocols/tokens.py and ldp_client/tokens.py. Loaded where a
// token is obtained.
import { base64url, concat, hex, littleEndian, unbase64url, unhex, utf8 } from "../bytes.js";
import type { Campaign, Issuer } from "../document/types.js";
import { hmac, sha256 } from "../exact/sha256.js";
import { drawQuestions } from "../perturb.js";
import { reportId } from "../wire.js";

const TYPE = [0, 2];
const MODULUS = 81; // where it begins in a key
const HASH_BYTES = 48;
const SALT_BYTES = 48;
const MODULUS_BYTES = 256;
// 352 bytes: the salt, and 48 more than the modulus has, so that their remainder is uniform but for 2^-384
const DIGESTS = 11;

/** What the issuer is asked, and the token (base64url) that its answer makes; undefined where that is no signature. */
export interface TokenRequest {
  readonly request: Uint8Array;
  finish(response: Uint8Array | ArrayBuffer): string | undefined;
}

/** The issuer's public key, whose SHA-256 names it. */
const keyOf = ({ key }: Issuer): Uint8Array => unbase64url(key.replace(/=/g, ""));

export const number = (bytes: Uint8Array): bigint => BigInt(`0x0${hex(bytes)}`);
export const bytesOf = (value: bigint): Uint8Array => unhex(value.toString(16).padStart(2 * MODULUS_BYTES, "0"));

/** `base` to the public exponent, 65537. */
export function raised(base: bigint, modulus: bigint): bigint {
  let power = base;
  for (let i = 0; i < 16; i++) power = (power * power) % modulus;
  return (power * base) % modulus;
}

/** What times `value` is 1; undefined where they have a factor in common. */
export function inverse(value: bigint, modulus: bigint): bigint | undefined {
  let [a, b, x, y] = [modulus, value % modulus, 0n, 1n];
  while (b) [a, b, x, y] = [b, a % b, y, x - (a / b) * y];
  return a === 1n ? (x + modulus) % modulus : undefined;
}

const sha384 = async (bytes: Uint8Array): Promise<Uint8Array> =>
  new Uint8Array(await crypto.subtle.digest("SHA-384", bytes as BufferSource));

/** EMSA-PSS-ENCODE (RFC 8017, 9.1.1) with SHA-384 and MGF1 for a modulus of so many bits. */
export async function padded(message: Uint8Array, salt: Uint8Array, bits: number): Promise<bigint> {
  const digest = await sha384(concat(new Uint8Array(8), await sha384(message), salt));
  const length = ((bits + 6) >> 3) - HASH_BYTES - 1;
  const counters = Array.from({ length: Math.ceil(length / HASH_BYTES) }, (_, i) => [0, 0, 0, i]);
  const mask = concat(...(await Promise.all(counters.map((counter) => sha384(concat(digest, counter))))));
  const hidden = number(concat([1], salt)) ^ number(mask.slice(0, length));
  // The first bits of what is encoded are 0, so that it is below the modulus.
  return (
    (BigInt.asUintN(bits - 1 - 8 * (HASH_BYTES + 1), hidden) << BigInt(8 * (HASH_BYTES + 1))) |
    number(concat(digest, [0xbc]))
  );
}

/**
 * What is signed (RFC 9578, 6.1): type, nonce, digest of the challenge, id of the key. The nonce is the hash of the ids of
 * all reports of the upload, so that a token is of one answer.
 */
export function tokenInput(campaign: Campaign, ids: readonly Uint8Array[]): Uint8Array {
  const { name } = campaign.issuer!;
  // Type, issuer, the campaign's id as redemption context, and no origin (RFC 9577, 2.1.1).
  const challenge = concat(TYPE, [0, name.length], utf8(name), [32], unbase64url(campaign.id), [0, 0]);
  const all = unhex(ids.map(hex).sort().join(""));
  const nonce = sha256(concat(utf8("ldp-bayes answer 1\n"), all));
  return concat(TYPE, nonce, sha256(challenge), sha256(keyOf(campaign.issuer!)));
}

/**
 * The TokenRequest (RFC 9578, 6.1) of the device with this secret: a function of both, so that a request that is sent
 * again is the same bytes. Undefined where the key in the campaign's document has a small factor, and is none.
 */
export async function tokenRequest(campaign: Campaign, secret: Uint8Array): Promise<TokenRequest | undefined> {
  const key = keyOf(campaign.issuer!);
  const modulus = number(key.slice(MODULUS, MODULUS + MODULUS_BYTES));
  const ids = drawQuestions(campaign, secret).map(({ group }) => reportId(secret, campaign, group));
  const signed = tokenInput(campaign, ids);
  const drawn = concat(
    ...Array.from({ length: DIGESTS }, (_, n) => hmac(secret, utf8(`token${campaign.id}`), littleEndian(n, 4))),
  );
  const encoded = await padded(signed, drawn.slice(0, SALT_BYTES), 8 * MODULUS_BYTES);
  const factor = number(drawn.slice(SALT_BYTES)) % modulus;
  const unblinding = inverse(factor, modulus);
  if (!unblinding || !inverse(encoded, modulus)) return undefined;
  return {
    request: concat(TYPE, sha256(key).slice(-1), bytesOf((encoded * raised(factor, modulus)) % modulus)),
    finish(response) {
      const bytes = new Uint8Array(response as Uint8Array);
      if (bytes.length !== MODULUS_BYTES) return undefined;
      const blind = number(bytes);
      const signature = (blind * unblinding) % modulus;
      const right = blind < modulus && raised(signature, modulus) === encoded;
      return right ? base64url(concat(signed, bytesOf(signature))) : undefined;
    },
  };
}
