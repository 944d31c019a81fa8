/**
 * Asking a room's server over HTTP: what is wished for, how long is waited, and what a refusal says. Knows no WebRTC connection.
 */

/**
 * `base`: the address that the server's paths begin from, with a slash at its end.
 * @typedef {{
 *   base: string, room: string, token: string | null, person: string | null, role: import('./messages.js').Role | null,
 *   access: string | null, consent: boolean, card: string | null, drivers?: string | null, signal?: AbortSignal,
 * }} Wish `card`, `drivers`: the world of a room that is not open yet, and how several people drive it. `access`: the token that opens the room, where the server asks for one. `consent`: what is done may train models
 */

export const OPEN_TIMEOUT_MS = 8000;
/** A question that cannot do harm is asked again so often, without waiting for those that may be lost on the way. */
const AGAIN_MS = 700;
/** So long one of them is waited for: no more than four are on their way, for browsers allow six. */
const QUESTION_MS = 4 * AGAIN_MS;

/** The server said no, in words. */
export class Refusal extends Error {
  /**
   * @param {number} status
   * @param {string} code
   * @param {string} detail
   * @param {number} retry_after_s
   * @param {number} queue_place
   */
  constructor(status, code, detail, retry_after_s, queue_place) {
    super(detail);
    this.status = status;
    this.code = code;
    this.retry_after_s = retry_after_s;
    this.queue_place = queue_place;
  }
}

/** So long an answer is waited for, unless the wish is given up. @param {Wish} wish */
function patience({ signal }) {
  const late = AbortSignal.timeout(OPEN_TIMEOUT_MS);
  return signal ? either(late, signal) : late;
}

/** Whichever comes first; the first one alone in a browser that cannot tell. @param {...AbortSignal} signals */
function either(...signals) {
  return AbortSignal.any?.(signals) ?? /** @type {AbortSignal} */ (signals[0]);
}

/** @param {Wish} wish @returns {Record<string, string>} */
function credentials({ access }) {
  return access ? { Authorization: `Bearer ${access}` } : {};
}

/**
 * STUN and TURN servers that the server tells of; none where it tells of none. The first question of every attempt, so it
 * also finds out, soon after a network is back, that it is.
 * @param {Wish} wish
 * @returns {Promise<RTCIceServer[]>}
 */
export async function askIce(wish) {
  const path = `${wish.base}v1/rooms/${encodeURIComponent(wish.room)}/ice`;
  const said = await soonest(async (signal) => {
    const response = await fetch(path, { headers: credentials(wish), signal });
    return response.ok ? response.json().catch(() => null) : null;
  }, patience(wish));
  return Array.isArray(said?.ice_servers) ? said.ice_servers : [];
}

/**
 * The first of several answers to one question.
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} question @param {AbortSignal} late
 */
async function soonest(question, late) {
  const answered = new AbortController();
  /** @type {Promise<T>[]} */
  const answers = [];
  try {
    while (!late.aborted) {
      answers.push(question(either(late, answered.signal, AbortSignal.timeout(QUESTION_MS))));
      const first = await Promise.race([Promise.any(answers).then((answer) => ({ answer })), after(AGAIN_MS)]);
      if (first) return first.answer;
    }
    throw late.reason;
  } catch (error) {
    throw error instanceof AggregateError ? error.errors.at(-1) : error;
  } finally {
    answered.abort();
  }
}

/** @param {number} ms @returns {Promise<null>} */
function after(ms) {
  return new Promise((resolve) => setTimeout(() => resolve(null), ms));
}

/**
 * @param {Wish} wish
 * @param {string} sdp
 * @returns {Promise<{ sdp: string, token: string, participant: string }>}
 */
export async function askOffer(wish, sdp) {
  const { token, role, person, consent, card, drivers } = wish;
  const body = { sdp, ...(token && { token }), ...(role && { role }), ...(person && { name: person }), ...(consent && { consent }), ...(card && { card }), ...(drivers && { drivers }) };
  const answer = await ask(wish, 'offer', JSON.stringify(body));
  if (typeof answer?.sdp !== 'string') throw new Error('the answer is none of Worldroom');
  return answer;
}

/**
 * POST something to the room; its answer, or a Refusal.
 * @param {Wish} wish
 * @param {string} path
 * @param {string} body
 * @returns {Promise<any>}
 */
export async function ask(wish, path, body) {
  const response = await fetch(`${wish.base}v1/rooms/${encodeURIComponent(wish.room)}/${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...credentials(wish) },
    body,
    signal: patience(wish),
  });
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  const said = answer !== null && typeof answer.detail === 'object' && answer.detail !== null ? answer.detail : answer;
  const wait_s = Number(said?.retry_after_s ?? response.headers.get('Retry-After')) || 0;
  const code = String(said?.code ?? said?.reason ?? response.status);
  const detail = typeof said?.detail === 'string' ? said.detail : response.statusText;
  throw new Refusal(response.status, code, detail, wait_s, Number(said?.queue_place) || 0);
}

/**
 * @param {string} reason
 * @returns {never}
 */
export function fail(reason) {
  throw new Error(reason);
}

/**
 * @template T
 * @param {number} limit_ms
 * @param {Promise<T>} work
 * @returns {Promise<T>}
 */
export function within(limit_ms, work) {
  return Promise.race([
    work,
    new Promise((_, reject) => {
      setTimeout(() => reject(new Error(`no answer within ${limit_ms / 1000} s`)), limit_ms);
    }),
  ]);
}
