/** What a device, or a server, must not accept; `code` is the stable name of the reason. */
export class Refusal extends Error {
  constructor(code, problem = code) {
    super(problem);
    this.code = code;
  }
}
