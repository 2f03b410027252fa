// A device in a campaign with an issuer: what it asks, what it believes, and what it shows.
import assert from "node:assert/strict";
import { createHash, webcrypto } from "node:crypto";
import { test } from "node:test";
import { BlindRSAMode } from "@cloudflare/privacypass-ts/lib/src/pub_verif_token.js";
import { hex, parseCampaign, unhex } from "../dist/index.js";
import { memoryStorage, problem } from "../dist/testing/index.js";
import { bytesOf, inverse, number, padded, raised, tokenInput, tokenRequest } from "../dist/later/tokens.js";
