import { LdpError } from "../errors.js";

/** JSON without repeated keys and without numbers beyond a double, which JSON.parse lets pass. Throws LdpError with `code`. */
export function strictJson(text: string, code: string): any {
  let members = -1; // of objects, of which the value as a whole is none
  try {
    const value: unknown = JSON.parse(text, function (this: unknown, _, member: unknown) {
      if (!Array.isArray(this)) members++;
      if (member === Infinity || member === -Infinity) throw new Error("a number beyond a double");
      return member;
    });
    const keys = text.match(/"(?:[^"\\]|\\.)*"(\s*:)?/g)?.filter((token) => token.endsWith(":"));
    if (members !== (keys?.length ?? 0)) throw new Error("a key stands twice");
    return value;
  } catch (error) {
    throw new LdpError(code, (error as Error).message);
  }
}
