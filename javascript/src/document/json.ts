import { LdpError } from "../errors.js";

/** JSON without repeated keys and numbers beyond a double, which JSON.parse lets pass. Throws LdpError with `code`. */
export function strictJson(text: string, code: string): any {
  let members = -1; // of objects, of which the value as a whole is none
  let beyond = false;
  let value: unknown;
  try {
    value = JSON.parse(text, function (this: unknown, _, member: unknown) {
      if (!Array.isArray(this)) members++;
      beyond ||= member === Infinity || member === -Infinity;
      return member;
    });
  } catch (error) {
    throw new LdpError(code, (error as Error).message);
  }
  const keys = (text.match(/"(?:[^"\\]|\\.)*"(\s*:)?/g) ?? []).filter((token) => token.endsWith(":"));
  if (beyond || members !== keys.length) throw new LdpError(code, "a key stands twice, or a number is beyond a double");
  return value;
}
