// The device's part of a blind signature (RFC 9474, RSABSSA-SHA384-PSS-Deterministic), by which an issuer signs the token
// of an answer without seeing it (RFC 9578, token type 2): protocols/ldp_protocols/tokens.py and ldp_client/tokens.py. Loaded where a
// token is obtained.
import { base64url, concat, hex, littleEndian, unbase64url, unhex, utf8 } from "../bytes.js";
import type { Campaign, Issuer } from "../document/types.js";
import { hmac, sha256 } from "../exact/sha256.js";
import { drawQuestions } from "../perturb.js";
import { reportId } from "../wire.js";

const TYPE = [0, 2];
const MODULUS = 81; // where it begins in a key, at whose end stands the exponent
const HASH_BYTES = 48;
const SALT_BYTES = 48;
const MODULUS_BYTES = 256;
// The salt, and 48 bytes more than the modulus has, so that their remainder is uniform but for 2^-384
const DRAWN = 352;

/** What the issuer is asked, and the token (base64url) that its answer makes; undefined where that is no signature. */
export interface TokenRequest {
  readonly request: Uint8Array;
  finish(response: Uint8Array | ArrayBuffer): string | undefined;
}

/** A public key of the issuer, whose SHA-256 names it: that of answers, or the one for relays. */
const keyOf = ({ key, relay_key }: Issuer, forRelay?: boolean): Uint8Array =>
  unbase64url((forRelay ? relay_key! : key).replace(/=/g, ""));

export const number = (bytes: Uint8Array): bigint => BigInt(`0x0${hex(bytes)}`);
const bytesOf = (value: bigint): Uint8Array => unhex(value.toString(16).padStart(2 * MODULUS_BYTES, "0"));

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

/** EMSA-PSS-ENCODE (RFC 8017, 9.1.1) with SHA-384 and MGF1 for a modulus of 2,048 bits, or up to 4,096. */
export async function padded(message: Uint8Array, salt: Uint8Array, bits = 2048): Promise<bigint> {
  const digest = await sha384(concat(new Uint8Array(8), await sha384(message), salt));
  const mask = concat(...(await Promise.all([...Array(10).keys()].map((i) => sha384(concat(digest, [0, 0, 0, i]))))));
  const hidden = number(concat([1], salt)) ^ number(mask.slice(0, bits / 8 - HASH_BYTES - 1));
  // The first bit of what is encoded is 0, so that it is below the modulus.
  return (BigInt.asUintN(bits - 393, hidden) << 392n) | number(concat(digest, [0xbc]));
}

/** What is signed (RFC 9578, 6.1): type, nonce, digest of the challenge, id of the key. */
function inputOf(campaign: Campaign, nonce: Uint8Array, forRelay?: boolean): Uint8Array {
  const { name } = campaign.issuer!;
  const id = unbase64url(campaign.id);
  const context = forRelay ? sha256(concat(utf8("ldp-bayes relay 1\n"), id)) : id;
  // Type, issuer, the campaign's id as redemption context, and no origin (RFC 9577, 2.1.1).
  const challenge = concat(TYPE, [0, name.length], utf8(name), [32], context, [0, 0]);
  return concat(TYPE, nonce, sha256(challenge), sha256(keyOf(campaign.issuer!, forRelay)));
}

/** Of an answer: the nonce is the hash of the ids of all reports of the upload, so that a token is of one answer. */
export const tokenInput = (campaign: Campaign, ids: readonly Uint8Array[]): Uint8Array =>
  inputOf(campaign, sha256(concat(utf8("ldp-bayes answer 1\n"), unhex(ids.map(hex).sort().join("")))));

/**
 * The TokenRequest (RFC 9578, 6.1) of the device with this secret, for its answer or for relays: a function of them, so that
 * a request that is sent again is the same bytes. Undefined where the key in the campaign's document has a small factor.
 */
export async function tokenRequest(
  campaign: Campaign,
  secret: Uint8Array,
  forRelay?: true,
): Promise<TokenRequest | undefined> {
  const key = keyOf(campaign.issuer!, forRelay);
  const modulus = number(key.slice(MODULUS, -5));
  const about = utf8((forRelay ? "relay" : "token") + campaign.id);
  const drawn = concat(...Array.from({ length: 12 }, (_, n) => hmac(secret, about, littleEndian(n, 4))));
  const ids = drawQuestions(campaign, secret).map(({ group }) => reportId(secret, campaign, group));
  const signed = forRelay ? inputOf(campaign, drawn.slice(DRAWN), forRelay) : tokenInput(campaign, ids);
  const encoded = await padded(signed, drawn.slice(0, SALT_BYTES));
  const factor = number(drawn.slice(SALT_BYTES, DRAWN)) % modulus;
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
