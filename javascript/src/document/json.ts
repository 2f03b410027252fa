import { must } from "./checks.js";

/** JSON without repeated keys and numbers beyond a double, which JSON.parse lets pass. Throws LdpError. */
export function strictJson(text: string): any {
  let members = -1; // of objects, of which the value as a whole is none
  let beyond = false;
  let value: unknown;
  try {
    value = JSON.parse(text, function (this: unknown, _, member: unknown) {
      if (!Array.isArray(this)) members++;
      beyond ||= [Infinity, -Infinity].includes(member as number);
      return member;
    });
  } catch {
    must(false, "document");
  }
  const colons = text.replace(/"(?:[^"\\]|\\.)*"/g, "").split(":").length - 1; // one after each key
  must(!beyond && members === colons, "document");
  return value;
}
