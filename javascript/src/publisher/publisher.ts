// An aggregator that is believed only as far as a publisher's signature goes: a key that the app was shipped with.
import { hex, utf8 } from "../bytes.js";
import { ensure, LdpError } from "../errors.js";
import { sha256 } from "../exact/sha256.js";
import type { Install } from "../device/install.js";
import { get } from "../device/network.js";
import type { Publisher, Signer } from "../device/signer.js";
import { readDirectory, type Directory } from "./directory.js";

const PUBLIC_KEY = /^[\w-]{42}[AEIMQUYcgkosw048]$/; // 32 bytes, in their one encoding

/**
 * The `publisher` of a campaign that has to be signed by the holder of a public key (43 characters), with its model. Throws
 * LdpError `bad-publisher`.
 */
export function signedBy(key: string): Signer {
  ensure(PUBLIC_KEY.test(key), "bad-publisher");
  return (install, url, id) => publisherOf(key, install, url, id);
}

function publisherOf(key: string, install: Install, url: string, id: string): Publisher {
  const { storage, fetch, policy, now } = install;
  const place = `publisher ${key}`;
  let seen: Directory | undefined;

  const newest = async (): Promise<Directory | undefined> => {
    const text = await storage.read(place);
    const kept = text === null ? undefined : await readDirectory(text, key);
    return seen && !(kept && kept.version > seen.version) ? seen : kept;
  };
  const isExpired = ({ expires }: Directory): boolean => Date.parse(expires) <= now() - policy.clockTolerance;
  /** What it says of the campaign: undefined where it is not named, null where no directory holds. */
  const entry = async (): Promise<Directory["campaigns"][number] | undefined | null> => {
    const directory = await newest();
    return directory && !isExpired(directory) ? directory.campaigns.filter((one) => one.id === id).pop() : null;
  };
  const keep = async (): Promise<void> => {
    const { text, version } = seen ?? {};
    if (!text) return;
    await storage.change(place, (before) =>
      before && JSON.parse(JSON.parse(before).statement).version > version! ? before : text,
    );
  };
  const renew = async (): Promise<void> => {
    const directory = await readDirectory(await get(fetch, `${url}/v1/directories/${key}`, policy), key);
    const known = await newest();
    ensure(!known || directory.version > known.version || directory.statement === known.statement, "older-directory");
    seen = directory;
    if (await install.exists()) await keep();
    ensure(!isExpired(directory), "directory-expired");
  };

  return {
    key,
    keep,
    async refresh() {
      if (!(await entry())) await renew();
    },
    async refusal() {
      const named = await entry();
      return named ? null : new LdpError(named === null ? "directory-expired" : "not-in-directory");
    },
    async checkModel(text) {
      const digest = hex(sha256(utf8(text)));
      if ((await entry())?.model === digest) return;
      await renew();
      ensure((await entry())?.model === digest, "invalid-model");
    },
  };
}
