// The gateway of a campaign, to which its uploads are sealed: protocols/ldp_protocols/document/gateway.py.
import { check, distinct, isInstant, isText, like, type Rule } from "./checks.js";

// One key configuration (RFC 9458, section 3.1) in base64url: any key's id, X25519, the public key, and HKDF-SHA256 with
// AES-128-GCM, with ChaCha20Poly1305, or with each of the two once. That the key makes a secret is checked by what seals.
const isKey = like(/^[\w-][AQgw]Ag[\w-]{42}[AEIMQUYcgkosw048]A(BAABAA[EM]|CAABAA(EAAQAD|MAAQAB))$/);

/** The rule of a campaign's gateway: a key, or keys with other ids (their first two characters) and between two a time. */
export const isGateway: Rule = (gateway) =>
  check(gateway, {
    key: (text) =>
      isText(text, 1000) &&
      text
        .split(/ (\S+) /)
        .every((word: string, place: number, words: string[]) =>
          place % 2 ? isInstant(word) && !(word <= words[place - 2]!) : isKey(word),
        ) &&
      distinct(`Z ${text}`.match(/Z ../g)!),
  });
