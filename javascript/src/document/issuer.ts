// The issuer of a campaign, who signs tokens for people it knows: protocols/ldp_protocols/document/issuer.py.
import { check, like, optional, whole, type Rule } from "./checks.js";

const MOST_TOKENS = 1024;
const NAME = /^(?!.{254})[a-z\d]((-*|\.)[a-z\d])*$/;
// The one encoding of a key (RFC 9578, 6.5), in base64url: a SubjectPublicKeyInfo of RSASSA-PSS with SHA-384, MGF1 with
// SHA-384 and a salt of 48 bytes; an odd modulus of 2,048 bits; and the exponent 65537.
const isKey = like(
  /^MIIBUjA9BgkqhkiG9w0BAQowMKANMAsGCWCGSAFlAwQCAqEaMBgGCSqGSIb3DQEBCDALBglghkgBZQMEAgKiAwIBMAOCAQ8AMIIBCgKCAQEA[g-z\d_-][\w-]{340}[Qw]IDAQAB={0,2}$/,
);

/** The rule of a campaign's issuer. */
export const isIssuer: Rule = (issuer) =>
  check(issuer, {
    name: like(NAME),
    key: isKey,
    relay_key: optional(isKey),
    tokens: optional(whole(1, MOST_TOKENS)),
  });
