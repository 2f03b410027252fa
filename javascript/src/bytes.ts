// Bytes and texts of them, without what only some engines have (Buffer, TextDecoder).

export const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);

export const hex = (bytes: Iterable<number>): string =>
  Array.from(bytes, (byte) => (byte + 256).toString(16).slice(1)).join("");

export const unhex = (text: string): Uint8Array =>
  Uint8Array.from(text.match(/../g) ?? [], (pair) => Number(`0x${pair}`));

/** Set part by part: spreading them takes most of a report's time. */
export function concat(...parts: readonly ArrayLike<number>[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** An unsigned integer below 2^53 in `width` bytes: an array of them keeps of each quotient what is below 256. */
export const littleEndian = (value: number, width: number): Uint8Array =>
  Uint8Array.from({ length: width }, (_, place) => value / 256 ** place);

/** Base64url without padding (RFC 4648, section 5). */
export const base64url = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes)).replace(/\W/g, (sign) => (sign < "/" ? "-" : sign < "0" ? "_" : "")); // of + / =

/** Its bytes; none where it is nothing like it. What has a second encoding differs from the text of these bytes. */
export function unbase64url(text: string): Uint8Array<ArrayBuffer> {
  try {
    const binary = atob(text.replace(/-/g, "+").replace(/_/g, "/"));
    return Uint8Array.from(binary, (sign) => sign.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}
