// Reports and uploads: their ids, and their one encoding in msgpack, padded to one length in a campaign.
import { concat, littleEndian, utf8 } from "./bytes.js";
import type { Campaign } from "./document/types.js";
import { hmac } from "./exact/sha256.js";
import { add } from "./values.js";

export const MEDIA_TYPE = "application/vnd.ldp-bayes.reports+msgpack";

const VERSION = 2;
const MOST_PADDED = 1 << 19; // bytes
const ID_BYTES = 16;

export interface Report {
  /** Index of the question in the document; in a series window * questions + index. */
  readonly question: number;
  /** 16 bytes. */
  readonly id: Uint8Array;
  readonly payload: Uint8Array;
}

/** What keyed messages about a group's answer begin with: the campaign's id, and the slot. */
export const slot = (campaign: Campaign, group: number): Uint8Array =>
  concat(utf8(campaign.id), littleEndian(campaign.privacy.answers === "all" ? group : 0, 4));

export const reportId = (secret: Uint8Array, campaign: Campaign, group: number): Uint8Array =>
  hmac(secret, slot(campaign, group)).slice(0, ID_BYTES);

/** One byte below a limit, else a code and a big-endian number of the least of 1, 2 or 4 bytes; 2^power at least. */
function head(value: number, below: number, short: number, code: number, power = 0): number[] {
  if (value < below) return [short + value];
  while (value >= 256 ** (1 << power)) power++;
  return [code + power, ...littleEndian(value, 1 << power).reverse()];
}

const binary = (bytes: Uint8Array): ArrayLike<number>[] => [head(bytes.length, 0, 0, 0xc4), bytes];
const blockHead = (question: number): number[] => [0x93, ...head(question, 128, 0, 0xcc)];
const uploadHead = (blocks: number): number[] => [0x92, VERSION, ...head(blocks, 16, 0x90, 0xdb, 1)];

/**
 * The one encoding of one device's reports, each of which answers a question of its own: msgpack, and zeros after it
 * where it is shorter than `length`, which is the campaign's.
 */
export function encodeUpload(reports: readonly Report[], length: number): Uint8Array {
  const blocks = [...reports]
    .sort((a, b) => a.question - b.question)
    .flatMap(({ question, id, payload }) => [blockHead(question), ...binary(id), ...binary(payload)]);
  const packed = concat(uploadHead(reports.length), ...blocks);
  return concat(packed, new Uint8Array(Math.max(0, length - packed.length)));
}

/** The questions of which a device answers one each. */
export const poolsOf = ({ privacy, groups, questions }: Campaign): Campaign["groups"] =>
  privacy.answers === "all" ? groups : [questions];

/** The bytes of the longest upload of one device of the campaign, and so of each: a length tells no question. 512 KiB at most. */
export function uploadLength(campaign: Campaign): number {
  const { windows, questions } = campaign;
  const last = ((windows?.count ?? 1) - 1) * questions.length; // in the last window the numbers are the largest
  const pools = poolsOf(campaign);
  const lengths = pools.map((pool) =>
    Math.max(
      ...pool.map(({ index, width }) => blockHead(last + index).length + head(width, 0, 0, 0xc4).length + width),
    ),
  );
  return Math.min(lengths.reduce(add, uploadHead(pools.length).length + pools.length * (2 + ID_BYTES)), MOST_PADDED);
}
