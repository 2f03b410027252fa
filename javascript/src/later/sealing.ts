// Uploads that are sealed to the gateway of their campaign and go through a relay (Oblivious HTTP, RFC 9458): the relay
// sees who sends and nothing of what, the aggregator what is sent and nothing of who. Loaded where a campaign has a
// gateway; HPKE (RFC 9180) is the package @hpke/core's.
import { concat, hex, unbase64url, utf8 } from "../bytes.js";
import { failed, problemCode, type Answer } from "../device/machine.js";
import { ensure } from "../errors.js";
import { hmac } from "../exact/sha256.js";
import { decodeResponse, encodeRequest } from "./binary.js";

const REQUEST_TYPE = "message/ohttp-req";
const RESPONSE_TYPE = /^message\/ohttp-res *(;|$)/i;
const AES_128_GCM = 1;
const BESIDE_BODY = 1024; // bytes, or a multiple of them: the length tells nothing of an address, a token or a platform
const LARGEST_ANSWER = (16 << 20) + 4096; // bytes; what sealing adds at most: nonce, tag, headers, padding
const RETRYABLE = [401, 403, 407, 408, 425, 429, 500, 502, 503, 504, 507];
const TAKEN = '{"rejected":[]}'; // an aggregator's answer to an upload of which it refuses nothing

/** One request, sealed, and what reads the answer to it. */
export interface Sealed {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  read(response: Response): Promise<Answer>;
}

/** The package, where the app has it; in a `try`, by which bundlers see that an app may be without. */
async function hpke() {
  try {
    return await import("@hpke/core");
  } catch {
    return undefined;
  }
}

/** The body of an answer, read no further than the piece that goes beyond the limit. */
async function bytesOf(response: Response): Promise<Uint8Array> {
  const reader = response.body?.getReader?.();
  if (!reader) return new Uint8Array(await response.arrayBuffer());
  const parts: Uint8Array[] = [];
  let [length, part]: [number, ReadableStreamReadResult<Uint8Array> | undefined] = [0, undefined];
  while (length <= LARGEST_ANSWER && !(part = await reader.read()).done) {
    parts.push(part.value);
    length += part.value.length;
  }
  return concat(...parts);
}

const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

const FIELD = 2n ** 255n - 19n;

/** Whether a public key is canonical, and makes a secret: not where the point, or its double, has an order of 4 or less (RFC 7748, 6.1). */
function isPoint(key: Uint8Array): boolean {
  const u = BigInt(`0x${hex(key.slice().reverse())}`);
  const square = u * u;
  return u < FIELD && (u * (square - 1n) * ((square - 1n) ** 2n - 4n * u * (square + 486662n * u + 1n))) % FIELD !== 0n;
}

/** Of keys and their times the one of now. Throws LdpError where one of them makes no secret. */
function keyOfNow(gateway: string): Uint8Array {
  const [now, words] = [new Date().toJSON(), gateway.split(" ")];
  const keys = words.filter((_, place) => !(place % 2)).map(unbase64url);
  ensure(
    keys.every((key) => isPoint(key.slice(3, 35))),
    "invalid-document",
    "gateway",
  );
  // A time is a text without milliseconds: in its own second it is above them, and begins with the next one.
  return keys[words.filter((word, place) => place % 2 && word <= now).length]!;
}

/**
 * A message, encapsulated to the key configuration of now in `gateway` (sections 4.1 and 4.3), and what opens the answer to it
 * (section 4.4). Throws where nothing here can seal; `open` for an answer that the gateway did not seal to this message.
 */
export async function encapsulate(gateway: string, message: Uint8Array) {
  const configuration = keyOfNow(gateway);
  const library = await hpke();
  // ChaCha20Poly1305 is not in WebCrypto, and a gateway that takes nothing else is rare.
  if (!library || ![configuration[40], configuration[44]].includes(AES_128_GCM))
    throw new Error("nothing here can seal");
  const { Aes128Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } = library;
  const suite = new CipherSuite({ kem: new DhkemX25519HkdfSha256(), kdf: new HkdfSha256(), aead: new Aes128Gcm() });
  const header = concat(configuration.slice(0, 3), [0, 1, 0, AES_128_GCM]);
  const context = await suite.createSenderContext({
    recipientPublicKey: await suite.kem.deserializePublicKey(configuration.slice(3, 35)),
    info: concat(utf8("message/bhttp request\0"), header),
  });
  const enc = new Uint8Array(context.enc);
  return {
    body: concat(header, enc, new Uint8Array(await context.seal(message))),
    async open(answer: Uint8Array): Promise<Uint8Array> {
      const { keySize, nonceSize } = suite.aead;
      const length = Math.max(keySize, nonceSize);
      const secret = new Uint8Array(await context.export(utf8("message/bhttp response"), length));
      // HKDF (RFC 5869), of which one block is enough.
      const pseudorandom = hmac(concat(enc, answer.slice(0, length)), secret);
      const derived = (name: string, size: number): Uint8Array =>
        hmac(pseudorandom, utf8(name), Uint8Array.of(1)).slice(0, size);
      const key = suite.aead.createEncryptionContext(derived("key", keySize));
      return new Uint8Array(await key.open(derived("nonce", nonceSize), answer.slice(length), new Uint8Array()));
    },
  };
}

/**
 * A POST of `body` to `url`, sealed; anew at each call (section 6.1), so that two tries of one upload have nothing in
 * common that a relay could see, but their length. Throws where nothing here can seal.
 */
export async function seal(
  gateway: string,
  url: string,
  headers: Readonly<Record<string, string>>,
  content: Uint8Array,
): Promise<Sealed> {
  const [, authority, path] = /^\w+:\/\/([^/]+)(.*)$/.exec(url) as unknown as [string, string, string];
  const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  const request = { method: "POST", scheme: "https", authority, path, headers: lower, body: content };
  const { body, open } = await encapsulate(gateway, encodeRequest(request, BESIDE_BODY));
  return {
    headers: { "Content-Type": REQUEST_TYPE },
    body,
    /**
     * A relay that mixes answers 202 once it has the upload on disk. Safety: whatever else was not sealed was said by the
     * relay, or by somebody on the way: nothing is dropped or taken for counted by it, and the upload is tried again.
     */
    async read(response) {
      const { status, headers } = response;
      const bytes = await bytesOf(response);
      if (status === 202 && !bytes.length) return { status: 200, headers, body: TAKEN };
      if (status === 200 && RESPONSE_TYPE.test(headers.get("content-type") ?? ""))
        try {
          const inner = decodeResponse(await open(bytes));
          return {
            status: inner.status,
            headers: new Headers(inner.headers as [string, string][]),
            body: textOf(inner.body),
          };
        } catch {
          return failed("not-the-gateway");
        }
      const answer = { status, headers, body: textOf(bytes) };
      if (RETRYABLE.includes(status)) return answer;
      return failed(problemCode(answer) ?? (status === 200 ? "not-the-gateway" : `http-${status}`));
    },
  };
}
