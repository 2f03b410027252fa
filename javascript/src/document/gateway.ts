// The gateway of a campaign, to which its uploads are sealed: protocols/document/gateway.py.
import { base64url, hex, unbase64url } from "../bytes.js";
import { check, type Rule } from "./checks.js";

// One key configuration (RFC 9458, section 3.1): X25519, and HKDF-SHA256 with AES-128-GCM, ChaCha20Poly1305, or each once.
const CONFIGURATION = /^..0020(.{64})(00040001000[13]|0008(0001000100010003|0001000300010001))$/;
const FIELD = 2n ** 255n - 19n;

/** Whether a public key makes no secret: the point has an order of 1, 2 or 4, or its double one of 4 (RFC 7748, 6.1). */
function isSmall(key: string): boolean {
  const u = BigInt.asUintN(255, BigInt(`0x${key.match(/../g)!.reverse().join("")}`));
  const square = u * u;
  return [u * (square - 1n), (square - 1n) ** 2n - 4n * u * (square + 486662n * u + 1n)].some((x) => !(x % FIELD));
}

/** The rule of a campaign's gateway. */
export const isGateway: Rule = (gateway) =>
  check(gateway, {
    key(text) {
      if (typeof text !== "string") return false;
      const bytes = unbase64url(text);
      const [, key] = CONFIGURATION.exec(hex(bytes)) ?? [];
      return key && base64url(bytes) === text && !isSmall(key);
    },
  });
