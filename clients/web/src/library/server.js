/** What the library asks its server, with the token of the address where there is one. */

/** The server said no, in words. */
export class Refused extends Error {
  /**
   * @param {number} status
   * @param {string} detail
   * @param {string} [code]
   */
  constructor(status, detail, code = '') {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

export class Server {
  /** @param {string | null} token opens the library, where the server asks for one */
  constructor(token) {
    this.token = token;
  }

  /** @param {string} path @param {string} [method] @param {object} [body] @returns {Promise<Response>} raises `Refused` */
  async ask(path, method = 'GET', body = undefined) {
    const headers = this.token ? { Authorization: `Bearer ${this.token}` } : undefined;
    const answer = await fetch(`v1/library${path}`, { method, headers, body: body && JSON.stringify(body) }).catch(() => null);
    if (answer === null) throw new Refused(0, 'The server does not answer.');
    if (answer.ok) return answer;
    const said = await answer.json().catch(() => null);
    if (answer.status === 401 || answer.status === 403) throw new Refused(answer.status, 'This library opens by invitation: use the whole address that you were given.');
    throw new Refused(answer.status, typeof said?.detail === 'string' ? said.detail : `The server said ${answer.status}.`, said?.code);
  }

  /** @template T @param {string} path @returns {Promise<T>} */
  async json(path) {
    return (await this.ask(path)).json();
  }

  /** An address for an img or a video, which send no token: with one, the whole file is fetched. @param {string} path */
  async address(path) {
    if (!this.token) return `v1/library${path}`;
    return URL.createObjectURL(await (await this.ask(path)).blob());
  }
}
