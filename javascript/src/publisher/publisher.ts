// An aggregator that is believed only as far as a publisher's signature goes: keys that the app was shipped with.
import { hex, utf8 } from "../bytes.js";
import { ensure, LdpError } from "../errors.js";
import { sha256 } from "../exact/sha256.js";
import { exists, type Install } from "../device/install.js";
import { CLOCK_TOLERANCE } from "../device/policy.js";
import { get, publicBase } from "../device/network.js";
import type { Signer } from "../device/signer.js";
import { readDirectory, type Directory } from "./directory.js";

const PUBLIC_KEY = /^[\w-]{42}[AEIMQUYcgkosw048]$/; // 32 bytes, in their one encoding

/**
 * The `publisher` of a campaign that has to be signed, with its model, by the holder of one of these public keys (43 characters
 * each): an app may pin the next key beside the one in use. Throws LdpError `bad-publisher`.
 */
export function signedBy(...keys: readonly string[]): Signer {
  ensure(keys.length && keys.every((key) => PUBLIC_KEY.test(key)), "bad-publisher");
  return (install, url, id) => {
    const sources = keys.map((key) => sourceOf(key, install, publicBase(url, install.relay)));
    const ofAll = <T>(ask: (source: Source) => Promise<T>): Promise<T[]> => Promise.all(sources.map(ask));
    /** What the directories that hold say of the campaign, once each that names it; null where none holds. */
    const entries = async (): Promise<Directory["campaigns"][number][] | null> => {
      const standing = (await ofAll((source) => source.standing())).flatMap((directory) => directory ?? []);
      if (!standing.length) return null;
      return standing.flatMap(({ campaigns }) => campaigns.filter((one) => one.id === id).slice(-1));
    };
    /** The directory of each key anew. Throws what went wrong with the first, where none was had. */
    const renew = async (until: number): Promise<void> => {
      const tried = await Promise.allSettled(sources.map((source) => source.renew(until)));
      const failures = tried.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
      if (failures.length === keys.length) throw failures[0];
    };
    const signs = async (digest: string): Promise<boolean> =>
      !!(await entries())?.some(({ model }) => model === digest);

    return {
      key: keys.join("+"),
      async keep() {
        await ofAll((source) => source.keep());
      },
      async refresh(until) {
        if (!(await entries())?.length) await renew(until);
      },
      async refusal() {
        const named = await entries();
        return named?.length ? null : new LdpError(named ? "not-in-directory" : "directory-expired");
      },
      async checkModel(text, until) {
        const digest = hex(sha256(utf8(text)));
        if (await signs(digest)) return;
        await renew(until);
        ensure(await signs(digest), "invalid-model");
      },
    };
  };
}

type Source = ReturnType<typeof sourceOf>;

/** The directory of one key. */
function sourceOf(key: string, install: Install, url: string) {
  const { storage, fetch, policy, now } = install;
  const place = `publisher ${key}`;
  let seen: Directory | undefined;

  const newest = async (): Promise<Directory | undefined> => {
    const text = await storage.read(place);
    const kept = text === null ? undefined : await readDirectory(text, key);
    return seen && !(kept && kept.version > seen.version) ? seen : kept;
  };
  const isExpired = ({ expires }: Directory): boolean => Date.parse(expires) <= now() - CLOCK_TOLERANCE;
  const keep = async (): Promise<void> => {
    const { text, version } = seen ?? {};
    if (!text) return;
    await storage.change(place, (before) =>
      before && JSON.parse(JSON.parse(before).statement).version > version! ? before : text,
    );
  };

  return {
    keep,
    /** The newest that was seen, as far as it holds now. */
    async standing(): Promise<Directory | null> {
      const directory = await newest();
      return directory && !isExpired(directory) ? directory : null;
    },
    async renew(until: number): Promise<void> {
      const text = await get(fetch, `${url}/v1/directories/${key}`, policy, until);
      const directory = await readDirectory(text, key);
      const known = await newest();
      ensure(!known || directory.version > known.version || directory.statement === known.statement, "older-directory");
      seen = directory;
      if (await exists(install)) await keep();
      ensure(!isExpired(directory), "directory-expired");
    },
  };
}
