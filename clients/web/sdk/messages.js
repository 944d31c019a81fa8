/**
 * The wire messages as types: JSON text with a lower-case `type` field, the mirror of `sessions/messages.py`.
 * Knows no connection. `*_ms` are on this page's `performance.now()` clock, `*_us` are durations on the server.
 */

/** @typedef {{ seq: number, key: string, down: boolean }} KeyEdge */
/**
 * @typedef {{
 *   type: 'input', seq: number, held: string[], edges: KeyEdge[], pointer: [number, number], sent_ms: number,
 *   levels?: [number, number][],
 * }} Input
 */
/** @typedef {'cut' | 'blend' | 'recache'} Transition */
/** One of several texts of a mix. @typedef {{ text: string, weight?: number }} WeighedText */
/** @typedef {{ transition?: Transition, seconds?: number, weight?: number, others?: WeighedText[], at?: number | null, over?: number | null }} PromptHow */
/** @typedef {{ type: 'prompt', id: number, text: string, transition: Transition, seconds: number } & PromptHow} Prompt */
/** One of the server's adapters, and how strongly it acts. @typedef {{ name: string, scale: number }} AdapterChoice */
/** @typedef {{ type: 'adapt', id: number, stack: AdapterChoice[] }} Adapt */
/** @typedef {{ type: 'pauseworld' | 'resumeworld', id: number }} PauseOrResume */
/** @typedef {{ type: 'resetworld', id: number, seed?: number | null }} ResetWorld */
/** @typedef {{ type: 'feedback', id: number, chunk: number, value: -1 | 0 | 1 }} Feedback */
/** @typedef {{ type: 'passwheel', id: number, to?: string | null }} PassWheel */
/** @typedef {{ type: 'refusewheel', id: number, to: string }} RefuseWheel */
/** How a future differs: by words, by keys that are held, or by chance. @typedef {{ prompt?: string | null, held?: string[] }} Way */
/** @typedef {{ type: 'fork', id: number, others: Way[] }} Fork */
/** @typedef {{ type: 'rewind', id: number, seconds: number }} Rewind */
/** @typedef {{ type: 'regenerate', id: number }} Regenerate */
/** @typedef {'this' | 'other' | 'tie' | 'skip'} Keep */
/** @typedef {{ type: 'choose', id: number, keep: Keep, place?: number | null }} Choose */
/** @typedef {{ type: 'leave', id: number }} Leave */
/** @typedef {{ type: 'shown', frames: [number, number][] }} Shown */
/** @typedef {{ type: 'ping', id: number, sent_ms: number }} Ping */
/** Of a replay: on from that chunk. @typedef {{ type: 'seek', id: number, chunk: number }} Seek */
/** @typedef {Fork | Rewind | Regenerate | Choose | Seek} Futures */
/** @typedef {Input | Prompt | Adapt | PauseOrResume | ResetWorld | Futures | Feedback | PassWheel | RefuseWheel | Leave | Shown | Ping} ClientMessage */

/** @typedef {{ name: string, keys: string[], analog?: boolean }} ControlView */
/** @typedef {'driver' | 'spectator'} Role */
/** @typedef {'opening' | 'running' | 'paused' | 'held' | 'closed'} WorldState */
/**
 * @typedef {{
 *   type: 'welcome', room: string, session: string, participant: string, role: Role, card: string, title: string,
 *   width: number, height: number, fps: number, controls: ControlView[], suggestions: string[], prompt: string,
 *   state: WorldState, epoch: number, chunk: number, resumed: boolean,
 *   first_frame: { width: number, height: number } | null, recache: boolean,
 *   protocol?: number, pointer?: boolean, prompt_chars?: number, lease_s?: number,
 *   adapters?: string[], stack?: AdapterChoice[], prompts_max?: number, players?: number,
 *   drivers?: string, replay?: string, replay_chunks?: number, counterfactual?: string,
 * }} Welcome
 */
/** @typedef {{ type: 'accepted', id: number }} Accepted */
/** @typedef {{ type: 'applied', id: number, chunk: number }} Applied */
/** @typedef {{ type: 'problem', code: string, detail: string, id?: number | null }} Problem */
/** @typedef {{ type: 'statechanged', state: WorldState, epoch: number }} StateChanged */
/** @typedef {{ branch: number, prompt: string, held: string[] }} FutureView */
/** Futures in one picture, by rows of two; none = one again. `earlier`: another take stands still, which may be kept. @typedef {{ type: 'sidebyside', chunk: number, places: FutureView[], earlier?: boolean }} SideBySide */
/** @typedef {{ type: 'promptchanged', version: number, text: string, understood?: string[], missed?: string[], weight?: number, others?: WeighedText[] }} PromptChanged */
/** What waits for its chunk, the next first. @typedef {{ type: 'promptsplanned', prompts: { version: number, at: number, text: string, weight?: number, others?: WeighedText[] }[] }} PromptsPlanned */
/** @typedef {{ type: 'adapterschanged', version: number, stack: AdapterChoice[] }} AdaptersChanged */
/** @typedef {{ participant: string, name: string }} Person */
/** A place at the wheel: who holds it, of which player (from 0), and which of the welcome's controls it steers now.
 * @typedef {{ holder: string | null, player: number, controls: number[] }} PlaceView */
/**
 * `asking`: who asked for the wheel. `wheel_in_s`: the driver is away, and in so many seconds anybody may take the wheel.
 * @typedef {{
 *   type: 'participants', driver: string | null, you: Role, spectators: number, people: Person[],
 *   asking?: string[], wheel_in_s?: number | null, drivers?: string[], places?: PlaceView[],
 * }} Participants
 */
/** @typedef {{ type: 'pong', id: number, sent_ms: number }} Pong */
/**
 * @typedef {{
 *   type: 'receipt', frame: number, chunk: number, epoch: number, rtp: number, prompt_version: number,
 *   input_seq: number, applied: number[], hold_us: number, wait_us: number, step_us: number, decode_us: number,
 *   encode_us: number, pace_us: number, preview?: boolean,
 * }} Receipt
 */
/** @typedef {{ type: 'receipts', items: Receipt[] }} Receipts what a spectator gets: several receipts at once */
/** @typedef {Welcome | Accepted | Applied | Problem | StateChanged | SideBySide | PromptChanged | PromptsPlanned | AdaptersChanged | Participants | Pong | Receipt | Receipts} ServerMessage */

const SERVER_TYPES = new Set([
  'welcome', 'accepted', 'applied', 'problem', 'statechanged', 'sidebyside', 'promptchanged', 'promptsplanned', 'adapterschanged',
  'participants', 'pong', 'receipt', 'receipts',
]);

/**
 * One message of the server, or null for text that is none: a newer server may say things this page does not know.
 * @param {unknown} data
 * @returns {ServerMessage | null}
 */
export function read(data) {
  if (typeof data !== 'string') return null;
  try {
    const message = JSON.parse(data);
    return SERVER_TYPES.has(message?.type) ? message : null;
  } catch {
    return null;
  }
}
