// Others' libraries at one end of a line, for tests that have Python at the other: node test/interop.mjs WHAT, lines of hexadecimal.
import { hkdfSync, randomBytes } from "node:crypto";
import { createInterface } from "node:readline";
import { RSABSSA } from "@cloudflare/blindrsa-ts";
import { publicVerif, Token, TOKEN_TYPES, TokenChallenge, util } from "@cloudflare/privacypass-ts";
import { Aes128Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from "@hpke/core";

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const next = async () => new Uint8Array(Buffer.from((await lines.next()).value, "hex"));
const say = (bytes) => process.stdout.write(`${Buffer.from(bytes).toString("hex")}\n`);
const { BlindRSAMode, Client, Issuer, TokenRequest, TokenResponse } = publicVerif;
const join = (...parts) => new Uint8Array(Buffer.concat(parts));

const ENDS = {
  /** A client of privacypass-ts: a key comes, a request goes, an answer comes, a token goes. */
  async client() {
    const client = new Client(BlindRSAMode.PSS);
    const challenge = new TokenChallenge(TOKEN_TYPES.BLIND_RSA.value, "issuer.example", new Uint8Array(32), []);
    say((await client.createTokenRequest(challenge, await next())).serialize());
    say((await client.finalize(TokenResponse.deserialize(await next()))).serialize());
  },
  /** An issuer of privacypass-ts: a key goes, a request comes, an answer goes, a token comes, and 01 goes where it is signed. */
  async issuer() {
    const keys = await Issuer.generateKey(BlindRSAMode.PSS, {
      modulusLength: 2048,
      publicExponent: Uint8Array.of(1, 0, 1),
    });
    const issuer = new Issuer(BlindRSAMode.PSS, "issuer.example", keys.privateKey, keys.publicKey);
    say(await publicVerif.getPublicKeyBytes(keys.publicKey));
    say((await issuer.issue(TokenRequest.deserialize(TOKEN_TYPES.BLIND_RSA, await next()))).serialize());
    say([Number(await issuer.verify(Token.deserialize(TOKEN_TYPES.BLIND_RSA, await next())))]);
  },
  /** A client of blindrsa-ts: a key and a message come, what is blinded goes, its signature comes, the message's goes. */
  async blind() {
    const spki = util.convertRSASSAPSSToEnc(await next());
    const key = await crypto.subtle.importKey("spki", spki, { name: "RSA-PSS", hash: "SHA-384" }, true, ["verify"]);
    const suite = RSABSSA.SHA384.PSS.Deterministic();
    const message = suite.prepare(await next());
    const { blindedMsg, inv } = await suite.blind(key, message);
    say(blindedMsg);
    say(await suite.finalize(key, message, await next(), inv));
  },
  /** A gateway on @hpke/core: its secret key and a sealed request come, the message goes; an answer comes, and goes sealed. */
  async gateway() {
    const suite = new CipherSuite({
      kem: new DhkemX25519HkdfSha256(),
      kdf: new HkdfSha256(),
      aead: new Aes128Gcm(),
    });
    const recipientKey = await suite.kem.deserializePrivateKey(await next());
    const sealed = await next();
    const [header, enc] = [sealed.slice(0, 7), sealed.slice(7, 39)];
    const info = join(Buffer.from("message/bhttp request\0"), header);
    const context = await suite.createRecipientContext({ recipientKey, enc, info });
    say(new Uint8Array(await context.open(sealed.slice(39))));
    const nonce = randomBytes(16);
    const secret = await context.export(Buffer.from("message/bhttp response"), 16);
    const derived = (name, size) => new Uint8Array(hkdfSync("sha256", secret, join(enc, nonce), name, size));
    const key = suite.aead.createEncryptionContext(derived("key", 16));
    say(join(nonce, new Uint8Array(await key.seal(derived("nonce", 12), await next(), new Uint8Array()))));
  },
};

await ENDS[process.argv[2]]();
process.exit();
