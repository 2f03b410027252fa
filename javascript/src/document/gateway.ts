// The gateway of a campaign, to which its uploads are sealed: protocols/ldp_protocols/document/gateway.py.
import { check, distinct, isInstant, isText, type Rule } from "./checks.js";

// One key configuration (RFC 9458, section 3.1) in base64url: any key's id, X25519, the public key, and HKDF-SHA256 with
// AES-128-GCM, with ChaCha20Poly1305, or with each of the two once.
const CONFIGURATION = /^[\w-][AQgw]Ag([\w-]{42}[AEIMQUYcgkosw048])A(BAABAA[EM]|CAABAA(EAAQAD|MAAQAB))$/;
const FIELD = 2n ** 255n - 19n;

/** Whether a public key is canonical, and makes a secret: not where the point, or its double, has an order of 4 or less (RFC 7748, 6.1). */
function isPoint(key: string): boolean {
  const bytes = atob(key.replace(/-/g, "+").replace(/_/g, "/"));
  const u = [...bytes].reduceRight((high, byte) => (high << 8n) | BigInt(byte.charCodeAt(0)), 0n);
  const square = u * u;
  return u < FIELD && (u * (square - 1n) * ((square - 1n) ** 2n - 4n * u * (square + 486662n * u + 1n))) % FIELD !== 0n;
}

/** The rule of a campaign's gateway: a key, or keys with other ids (their first two characters) and between two a time. */
export const isGateway: Rule = (gateway) =>
  check(gateway, {
    key: (text) =>
      isText(text, 1000) &&
      text
        .split(/ (\S+) /)
        .every((word: string, place: number, words: string[]) =>
          place % 2 ? isInstant(word) && !(word <= words[place - 2]!) : isPoint(CONFIGURATION.exec(word)?.[1] ?? ""),
        ) &&
      distinct(`Z ${text}`.match(/Z ../g)!),
  });
