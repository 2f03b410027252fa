// Binary HTTP messages (RFC 9292), as far as a device needs them: it writes requests and reads responses.
import { concat, utf8 } from "../bytes.js";

export type Fields = readonly (readonly [name: string, value: string])[];

export interface BinaryRequest {
  readonly method: string;
  readonly scheme: string;
  readonly authority: string;
  readonly path: string;
  /** Names in small letters. */
  readonly headers: Fields;
  readonly body: Uint8Array;
}

/** A final response; a byte of a header's value is a character. */
export interface BinaryResponse {
  readonly status: number;
  readonly headers: Fields;
  readonly body: Uint8Array;
}

const REQUEST = 0;
const RESPONSE = 1;
const INDETERMINATE = 2;
const MOST_FIELDS = 64;
// RFC 9113, section 8.2.1, and no control characters.
const NAME = /^[a-z0-9!#$%&'*+.^_`|~-]+$/;
const VALUE = /^([!-~\x80-\xff]([ -~\t\x80-\xff]*[!-~\x80-\xff])?)?$/;

/** RFC 9000, section 16; below 2^30 here. */
function numeral(value: number): number[] {
  if (value < 64) return [value];
  return value < 16384
    ? [64 | (value >> 8), value & 255]
    : [128 | (value >> 24), (value >> 16) & 255, (value >> 8) & 255, value & 255];
}

const block = (content: Uint8Array): Uint8Array => concat(numeral(content.length), content);

/**
 * The known-length form (section 3.1), cut off where what follows is empty (section 3.8); padded with zeros to a multiple
 * of `beside` bytes and the body.
 */
export function encodeRequest(
  { method, scheme, authority, path, headers, body }: BinaryRequest,
  beside = 1,
): Uint8Array {
  const control = [method, scheme, authority, path].map((text) => block(utf8(text)));
  const lines = concat(...headers.flat().map((text) => block(utf8(text))));
  const message = concat(
    [REQUEST],
    ...control,
    ...(lines.length || body.length ? [block(lines)] : []),
    ...(body.length ? [block(body)] : []),
  );
  const padded = new Uint8Array(body.length + Math.ceil((message.length - body.length) / beside) * beside);
  padded.set(message);
  return padded;
}

/** Takes a message apart from its beginning. What ends too early is no message. */
class Reader {
  private at = 0;

  constructor(private readonly message: Uint8Array) {}

  get rest(): Uint8Array {
    return this.message.subarray(this.at);
  }

  take(count: number): Uint8Array {
    const taken = this.rest.subarray(0, count);
    must(taken.length === count);
    this.at += count;
    return taken;
  }

  number(): number {
    const first = this.take(1)[0]!;
    return this.take(2 ** (first >> 6) - 1).reduce((value, byte) => 256 * value + byte, first & 63);
  }

  block(): Uint8Array {
    return this.take(this.number());
  }

  /** A field section; where the message ends before it, it is empty. */
  fields(known: boolean): Fields {
    const found: [string, string][] = [];
    const line = (from: Reader, length: number): void => {
      const [name, value] = [from.take(length), from.block()].map((bytes) => String.fromCharCode(...bytes)) as [
        string,
        string,
      ];
      must(NAME.test(name) && VALUE.test(value) && found.push([name, value]) <= MOST_FIELDS);
    };
    if (!this.rest.length) return found;
    if (known) for (const lines = new Reader(this.block()); lines.rest.length;) line(lines, lines.number());
    else for (let length; (length = this.number());) line(this, length);
    return found;
  }

  content(known: boolean): Uint8Array {
    if (!this.rest.length) return this.rest;
    if (known) return this.block();
    const chunks: Uint8Array[] = [];
    for (let length; (length = this.number());) chunks.push(this.take(length));
    return concat(...chunks);
  }
}

function must(right: unknown): asserts right {
  if (!right) throw new RangeError("not a binary HTTP message (RFC 9292)");
}

/** The final response in either form; informational ones before it are left out. Throws RangeError for any other message. */
export function decodeResponse(message: Uint8Array): BinaryResponse {
  const reader = new Reader(message);
  const framing = reader.number();
  must(framing === RESPONSE || framing === RESPONSE + INDETERMINATE);
  const known = framing === RESPONSE;
  let status: number;
  while ((status = reader.number()) >= 100 && status < 200) reader.fields(known);
  must(status >= 200 && status < 600);
  const [headers, body] = [reader.fields(known), reader.content(known)];
  reader.fields(known); // trailers, which nothing here means anything by
  must(reader.rest.every((byte) => !byte)); // the padding
  return { status, headers, body };
}
