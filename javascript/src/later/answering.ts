// What whoever has agreed needs, and whoever is only asked does not: the answer, its delivery, and classifying.
export { agree, answer, obtain, outOfWindow } from "../device/contribution.js";
export { deliver } from "../device/delivery.js";
export { Models } from "../device/models.js";
