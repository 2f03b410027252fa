// The issuer of a campaign, who signs tokens for people it knows: protocols/document/issuer.py.
import { base64url, hex, unbase64url } from "../bytes.js";
import { check, optional, whole, type Rule } from "./checks.js";
import type { Issuer } from "./types.js";

const MOST_TOKENS = 1024;
const NAME = /^(?=.{1,253}$)[a-z\d]([a-z\d-]*[a-z\d])?(\.[a-z\d]([a-z\d-]*[a-z\d])?)*$/;
// An odd modulus of 256 bytes in the one encoding of a key (RFC 9578, 6.5): SubjectPublicKeyInfo of RSASSA-PSS with SHA-384,
// MGF1 with SHA-384 and a salt of 48 bytes, and the exponent 65537.
const KEY =
  /^30820152303d06092a864886f70d01010a3030a00d300b0609608648016503040202a11a301806092a864886f70d010108300b0609608648016503040202a2030201300382010f003082010a0282010100(?!00)(.{511}[13579bdf])0203010001$/;

/** The public key's bytes, whose SHA-256 names it. */
export const keyOf = ({ key }: Issuer): Uint8Array => unbase64url(key.replace(/=/g, ""));
/** The modulus, in hexadecimal. */
export const modulusOf = (issuer: Issuer): string | undefined => KEY.exec(hex(keyOf(issuer)))?.[1];

/** The rule of a campaign's issuer. */
export const isIssuer: Rule = (issuer) =>
  check(issuer, {
    name: (name) => typeof name === "string" && NAME.test(name),
    key: (key) =>
      typeof key === "string" && base64url(keyOf(issuer)) === key.replace(/={0,2}$/, "") && modulusOf(issuer),
    tokens: optional(whole(1, MOST_TOKENS)),
  });
