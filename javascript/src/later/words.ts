// What people are told in words, loaded where somebody reads.
export { preview } from "../preview.js";
export { asked, explained, ledgerText, said } from "../words.js";
