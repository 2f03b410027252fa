// What an app's publisher signs: which campaigns are open for it, and which model goes with each.
import { base64url, unbase64url, utf8 } from "../bytes.js";
import { ensure, LdpError } from "../errors.js";
import { check, isInstant, isList, isName, optional, whole } from "../document/checks.js";
import { strictJson } from "../document/json.js";

const PREFIX = "ldp-bayes directory 1\n"; // of what is signed
const LARGEST_DIRECTORY = 1 << 16; // bytes
const MOST_CAMPAIGNS = 256;

export interface Directory {
  /** The document as it came, and the text in it that is signed. */
  readonly text: string;
  readonly statement: string;
  readonly version: number;
  readonly expires: string;
  /** The SHA-256 (hexadecimal) of the model, where there is one yet. */
  readonly campaigns: readonly { readonly id: string; readonly model?: string | null }[];
}

/** Throws LdpError `no-signatures` where the platform has no Ed25519: what cannot be checked is not believed. */
async function isSigned(key: string, message: BufferSource, signature: BufferSource): Promise<boolean> {
  let imported: CryptoKey | undefined;
  try {
    imported = await crypto.subtle.importKey("raw", unbase64url(key), "Ed25519", false, ["verify"]);
  } catch {
    // No crypto.subtle, or one without Ed25519.
  }
  ensure(imported, "no-signatures");
  return crypto.subtle.verify("Ed25519", imported, signature, message);
}

/** An object of JSON whose members are right; any other is no directory. */
function read(text: string, rules: Parameters<typeof check>[1]): any {
  try {
    const value = strictJson(text);
    check(value, rules);
    return value;
  } catch {
    throw new LdpError("malformed-directory");
  }
}

const isText = (value: unknown): boolean => typeof value === "string";

/**
 * The statement of a document that the holder of `key` signed; what it holds is not looked at before the signature is. Throws
 * LdpError `malformed-directory`, `wrong-signature` or `no-signatures`.
 */
export async function readDirectory(text: string, key: string): Promise<Directory> {
  ensure(utf8(text).length <= LARGEST_DIRECTORY, "malformed-directory");
  const { statement, signature } = read(text, { statement: isText, signature: isText });
  const signed = unbase64url(signature);
  const right =
    base64url(signed) === signature && (await isSigned(key, utf8(PREFIX + statement) as BufferSource, signed));
  ensure(right, "wrong-signature");
  const told = read(statement, {
    version: whole(1, Number.MAX_SAFE_INTEGER),
    expires: isInstant,
    campaigns: (list) => isList(list, 0, MOST_CAMPAIGNS, (one) => check(one, { id: isName, model: optional(isName) })),
  });
  return { ...told, text, statement };
}
