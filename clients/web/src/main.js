/**
 * The page: wires the room to the picture, the keys, the prompt box, the buttons and the HUD.
 * Everything that has an idea of its own lives in its own module; here is only who tells whom.
 */

import { Acts } from './acts.js';
import { element, say } from './dom.js';
import { listenToGamepad } from './gamepad.js';
import { FirstFrame } from './firstframe.js';
import { glow } from './glow.js';
import { Hud } from './hud.js';
import { Keys } from './input.js';
import { isTyping, listenToKeyboard } from './keyboard.js';
import { KeyOverlay } from './keys.js';
import { Latency, rtpSince } from './latency.js';
import { Notice } from './notice.js';
import { Picture } from './picture.js';
import { Place } from './place.js';
import { PromptBox } from './prompt.js';
import { Room } from './room.js';
import { toast } from './toast.js';

/** @typedef {import('./latency.js').Joined} Joined */
/** @typedef {import('./messages.js').ServerMessage} ServerMessage */
/** @typedef {import('./messages.js').Welcome} Welcome */
/** @typedef {import('./messages.js').WorldState} WorldState */

const SHOWN_EVERY_MS = 250;
const SHOWN_MOST = 64;
const STATS_EVERY_MS = 1000;
const WORLD_NAMES = { opening: 'Opening', running: 'Live', paused: 'Paused', held: 'Held', closed: 'Ended' };
const LINK_NAMES = {
  connecting: 'Connecting', live: 'Live', lost: 'Reconnecting', full: 'Server full', refused: 'Refused',
  elsewhere: 'In another tab', ended: 'Ended', 'no-webrtc': 'Not supported', 'no-h264': 'Not supported',
};

const query = new URLSearchParams(location.search);
/** The page lives at /r/<room>. */
const roomName = location.pathname.match(/^\/r\/([\w-]+)/)?.[1] ?? 'lobby';
const place = new Place(roomName, sessionStorage);
const latency = new Latency();
const held = new Keys();

/** What the page knows of the world now; written by messages only. */
const world = {
  /** @type {Welcome | null} */
  welcome: null,
  /** @type {WorldState} */
  state: 'opening',
  drives: true,
  /** The newest frame seen: its receipt. @type {import('./messages.js').Receipt | null} */
  onScreen: null,
};
/** @type {[number, number][]} */
const shownFrames = [];
/** @type {Set<string>} */
const steering = new Set();
/** @type {Map<number, string>} */
const asked = new Map();
let sendTimer = 0;

const hud = new Hud(latency);
const overlay = new KeyOverlay(press);
const notice = new Notice(() => {
  if (notice.link.phase === 'elsewhere') room.start();
  else if (notice.link.phase === 'ended') startAnew();
  else if (world.state === 'paused' && notice.link.phase === 'live') acts.togglePause();
  else room.wake();
});
const promptBox = new PromptBox((text, transition, seconds) => ask('prompt', { type: 'prompt', text, transition, seconds }));
const firstFrame = new FirstFrame((file) => room.firstFrame(file));
const acts = new Acts({
  pause: () => ask('pause', { type: 'pauseworld' }),
  resume: () => ask('resume', { type: 'resumeworld' }),
  reset: () => ask('reset', { type: 'resetworld' }),
  feedback: (value) => ask('feedback', { type: 'feedback', chunk: world.onScreen?.chunk ?? 0, value }),
  wheel: (to) => ask('wheel', { type: 'passwheel', ...(to && { to }) }),
});
const picture = new Picture(element('picture', HTMLVideoElement), {
  shown: ({ rtp, shown_ms, receive_ms }) => {
    if (!notice.seen) {
      notice.seen = true;
      notice.update();
    }
    if (rtp !== undefined) seen(latency.shown(rtp, shown_ms, receive_ms));
  },
  blocked: () => toast('Tap the picture to start it'),
});
const room = new Room({
  name: roomName,
  person: query.get('name'),
  role: query.has('watch') ? 'spectator' : null,
  place,
  on: {
    link: showLink,
    message: hear,
    track: (track) => void picture.show(track),
    closing: () => picture.freeze(element('still', HTMLCanvasElement)),
  },
});

// ---- steering -------------------------------------------------------------------------------------------------------

/** @type {import('./keyboard.js').Press} */
function press(key, down, at_ms) {
  if (!world.drives && down) return;
  const seq = held.set(key, down, performance.now());
  if (seq === 0) return;
  if (world.state === 'running') latency.pressed(seq, at_ms);
  overlay.pressed(held.held);
  sendInput();
}

function release() {
  if (!held.releaseAll(performance.now())) return;
  overlay.pressed(held.held);
  sendInput();
}

/** Send what is due and come back when the next message is. */
function sendInput() {
  clearTimeout(sendTimer);
  const now_ms = performance.now();
  if (held.due(now_ms) === 0) room.input(held.message(now_ms));
  const next_ms = held.due(now_ms);
  if (next_ms !== Infinity) sendTimer = setTimeout(sendInput, next_ms);
}

/**
 * @param {string} what
 * @param {Parameters<Room['steer']>[0]} steer
 */
function ask(what, steer) {
  const id = room.steer(steer);
  if (id === 0) toast('Not connected: nothing was sent');
  else asked.set(id, what);
  return id;
}

// ---- what the server says -------------------------------------------------------------------------------------------

/** @param {ServerMessage} message */
function hear(message) {
  switch (message.type) {
    case 'welcome':
      return arrive(message);
    case 'receipt':
      if (!picture.tells) overlay.applied(message.applied);
      return seen(latency.receipt(message));
    case 'accepted':
      return accepted(message.id);
    case 'applied':
      return applied(message.id, message.chunk);
    case 'problem':
      promptBox.refused(message.id);
      asked.delete(message.id ?? 0);
      return toast(message.detail);
    case 'statechanged':
      latency.forgetPresses();
      return showWorld(message.state);
    case 'promptchanged':
      return promptBox.changed(message.text);
    case 'participants':
      world.drives = message.you === 'driver';
      acts.people(message, world.welcome?.participant ?? '');
      return showWorld(world.state);
    case 'pong':
      return undefined;
  }
}

/** @param {Welcome} welcome */
function arrive(welcome) {
  world.welcome = welcome;
  world.drives = welcome.role === 'driver';
  latency.restart();
  held.restart();
  overlay.pressed(held.held);
  world.onScreen = null;
  asked.clear();
  document.title = `${welcome.title} · Worldroom`;
  document.documentElement.style.setProperty('--ratio', String(welcome.width / welcome.height));
  say(element('title', HTMLElement), welcome.title);
  overlay.show(welcome.controls);
  overlay.applied([]);
  steering.clear();
  for (const control of welcome.controls) for (const key of control.keys) steering.add(key);
  promptBox.suggest(welcome.suggestions, welcome.recache === true);
  firstFrame.offer(welcome.first_frame ?? null);
  promptBox.changed(welcome.prompt);
  notice.seen = false;
  showWorld(welcome.state);
}

/** @param {number} id */
function accepted(id) {
  promptBox.accepted(id);
  if (asked.get(id) !== 'feedback') return;
  toast('Noted for this moment of the world');
  asked.delete(id);
}

/**
 * @param {number} id
 * @param {number} chunk
 */
function applied(id, chunk) {
  promptBox.applied(id, chunk);
  if (asked.get(id) === 'wheel' && world.drives) toast('You have let go of the wheel');
  asked.delete(id);
}

/** A frame is both on the screen and explained by its receipt. @param {Joined | null} joined */
function seen(joined) {
  if (joined === null) return;
  if (world.onScreen === null || rtpSince(joined.receipt.rtp, world.onScreen.rtp) > 0) {
    world.onScreen = joined.receipt;
    overlay.applied(joined.receipt.applied);
  }
  shownFrames.push([joined.receipt.frame, joined.shown_ms]);
  if (shownFrames.length >= SHOWN_MOST) reportShown();
}

function reportShown() {
  if (shownFrames.length > 0) room.shown({ type: 'shown', frames: shownFrames.splice(0, SHOWN_MOST) });
}

// ---- what the person sees -------------------------------------------------------------------------------------------

/** @param {import('./room.js').Link} link */
function showLink(link) {
  notice.link = link;
  document.body.dataset.phase = link.phase;
  if (link.phase !== 'live') release();
  else sendInput();
  showWorld(world.state);
}

/** @param {WorldState} state */
function showWorld(state) {
  world.state = state;
  notice.world = state;
  notice.update();
  const live = notice.link.phase === 'live';
  document.body.dataset.world = state;
  document.body.dataset.role = world.drives ? 'driver' : 'spectator';
  const name = live ? WORLD_NAMES[state] : LINK_NAMES[notice.link.phase];
  say(element('state-text', HTMLElement), live && state === 'running' && !world.drives ? 'Watching' : name);
  acts.state(state, live, world.drives);
  say(element('hud-hint', HTMLElement), world.drives ? 'Press a key to measure' : 'Whoever drives can measure');
  promptBox.enable(live && world.drives && state !== 'closed');
  firstFrame.enable(live && world.drives && state !== 'opening' && state !== 'closed');
}

function startAnew() {
  place.forget();
  room.start();
}

/** @param {KeyboardEvent} event */
function shortcut(event) {
  if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey || steering.has(event.code)) return;
  if (event.code === 'KeyP') acts.togglePause();
  else if (event.code === 'KeyH') element('hud-toggle', HTMLButtonElement).click();
  else if (event.code === 'KeyF') acts.fullscreen();
  else if (event.code === 'Slash') element('prompt-text', HTMLInputElement).focus();
  else return;
  event.preventDefault();
}

const steers = (/** @type {string} */ key) => steering.has(key);
listenToKeyboard({ steers, press, release });
listenToGamepad({ steers, press });
addEventListener('keydown', shortcut);
addEventListener('pagehide', () => room.stop('the page is left'));
addEventListener('pageshow', (event) => {
  if (event.persisted) room.start();
});
element('picture', HTMLVideoElement).addEventListener('click', (event) => {
  if (event.target instanceof HTMLVideoElement && event.target.paused) void event.target.play();
});
setInterval(reportShown, SHOWN_EVERY_MS);
setInterval(() => {
  hud.latencyChanged();
  notice.update();
}, 250);
setInterval(async () => hud.stats(await room.stats()), STATS_EVERY_MS);
glow(element('picture', HTMLVideoElement));

/** For the console and for tests. */
Object.assign(globalThis, { worldroom: { room, latency, world, hud, held } });
room.start();
