// For apps that are shipped with a publisher's key: campaigns and models that it has signed, and no others.
export { signedBy } from "./publisher.js";
