/**
 * The room's page: wires the room to the picture, the hands, the prompt box, the people, the buttons and the figures.
 * Everything that has an idea of its own lives in its own module; here is only who tells whom.
 */

import { Caps } from '../hands/caps.js';
import { isListening } from '../hands/focus.js';
import { listenToKeyboard, listenToShortcuts, SOURCE as KEYBOARD } from '../hands/keyboard.js';
import { listenToLook } from '../hands/look.js';
import { SELECT, START, listenToPads } from '../hands/pad.js';
import { CONSENT_KEY, NAME_KEY } from '../lobby/lists.js';
import { Room, Seat, memory, whereIs } from '../../sdk/index.js';
import { wellFormed } from '../../sdk/room.js';
import { Adapters } from './adapters.js';
import { Acts } from './acts.js';
import { element, say } from './dom.js';
import { FirstFrame } from './firstframe.js';
import { Futures } from './futures.js';
import { SeekBar } from './seek.js';
import { glow } from './glow.js';
import { Help } from './help.js';
import { Hint } from './hint.js';
import { Hud } from './hud.js';
import { Keep } from './keep.js';
import { remember } from './visits.js';
import { Notice } from './notice.js';
import { People } from './people.js';
import { Picture } from './picture.js';
import { PromptBox } from './prompt.js';
import { seated } from './seated.js';
import { FrameWatch, nameOf, whyNoPrompt } from './state.js';
import { Theatre } from './theatre.js';
import { speak, toast } from './toast.js';
import { Words } from './words.js';

/** @typedef {import('../../sdk/messages.js').Welcome} Welcome */

const { base, name, query, access } = whereIs(location.href);
const tab = memory(() => sessionStorage);
const browser = memory(() => localStorage);
const video = element('picture', HTMLVideoElement);
const frame = element('frame', HTMLElement);
const early = element('early', HTMLElement);
const room = new Room({
  base, name, seat: new Seat(name, tab, access), person: query.get('name') ?? browser.get(NAME_KEY), role: query.has('watch') ? 'spectator' : null,
  consent: browser.get(CONSENT_KEY) === 'yes', card: query.get('card'), drivers: query.get('drivers'),
});
const { world, latency, hold } = room;

const caps = new Caps({
  press: (source, key, down, at_ms) => press(source, key, down, at_ms),
  letGo: (source) => room.releaseAll(source) && pressed(),
});
const hud = new Hud(latency, () => room.stats(), browser);
const help = new Help((code) => caps.keyName(code));
const hint = new Hint(browser);
const theatre = new Theatre();
const notice = new Notice(() => {
  const { phase } = room.link;
  if (phase === 'elsewhere') room.start();
  else if (phase === 'ended') startAnew();
  else if (phase === 'live' && notice.now.blocked) void picture.play();
  else if (phase === 'live' && world.state === 'paused') acts.togglePause();
  else room.connection.wake();
});
const promptBox = new PromptBox(
  (asked) => room.ask({ type: 'prompt', ...asked, text: wellFormed(asked.text) }),
  new Words(name, browser),
);
const firstFrame = new FirstFrame((file) => room.firstFrame(file));
const adapters = new Adapters((stack) => {
  room.ask({ type: 'adapt', stack }).applied.catch((error) => adapters.refused(world.stack, error.message));
});
const acts = new Acts({
  pause: () => tell(room.ask({ type: 'pauseworld' }).applied),
  resume: () => tell(room.ask({ type: 'resumeworld' }).applied),
  reset: () => tell(room.ask({ type: 'resetworld' }).applied),
  feedback: (value) => {
    const { accepted } = room.ask({ type: 'feedback', chunk: world.onScreen?.chunk ?? 0, value });
    accepted.then(() => toast('Noted for this moment of the world'), (error) => toast(error.message));
  },
});
const people = new People({
  wheel: (to) => tell(room.ask({ type: 'passwheel', ...(to && { to }) }).applied),
  refuse: (to) => tell(room.ask({ type: 'refusewheel', to }).accepted),
});
const picture = new Picture(video, element('still', HTMLCanvasElement), {
  shown: (shown) => {
    room.shown(shown);
    frames.seen();
    if (notice.now.seen && document.body.dataset.shows === 'frames') return;
    notice.update({ seen: true });
    showWorld();
  },
  blocked: (blocked) => {
    notice.update({ blocked });
    showWorld();
  },
});
const frames = new FrameWatch(() => picture.shown_ms, showWorld);
const keep = new Keep(video, {
  name: () => `worldroom-${name}-${world.onScreen?.frame ?? 0}`,
  clip: async () => (await seated(`${base}v1/rooms/${name}/clip`, room.seat.token, 'GET', 'This server keeps no film')).blob(),
  film: async (running) => {
    await seated(`${base}v1/rooms/${name}/recording`, room.seat.token, running ? 'POST' : 'DELETE', 'This server films no room');
  },
  address: () => `${base}r/${name}`,
  drives: () => world.drives && !world.welcome?.replay,
});

const futures = new Futures(keep.panel, {
  fork: (others) => room.fork(Array.from({ length: others }, () => ({}))),
  again: () => room.again(),
  choose: (kept, place) => room.choose(kept, place),
});

const seekBar = new SeekBar((chunk) => room.seek(chunk), promptBox.chunks);

// ---- hands ------------------------------------------------------------------------------------------------------------

/** Keys of the card in this room. @type {Set<string>} */
const steering = new Set();
const steers = (/** @type {string} */ key) => steering.has(key);

/**
 * @param {string} source
 * @param {string} key
 * @param {boolean} down
 * @param {number} [at_ms]
 */
function press(source, key, down, at_ms) {
  if (down && world.shared && !caps.owns(key)) return;
  const seq = down ? room.press(key, { source, at_ms }) : room.release(key, { source, at_ms });
  if (seq !== 0) pressed();
}

function pressed() {
  const live = room.link.phase === 'live';
  caps.pressed(live ? hold.held : new Set(), live ? hold.level() : []);
}

/** @param {string} source */
function letGo(source) {
  if (room.releaseAll(source)) pressed();
}

listenToKeyboard({ steers, press: (key, down, at_ms) => press(KEYBOARD, key, down, at_ms), letGo: () => letGo(KEYBOARD) });
listenToShortcuts({
  steers,
  act: {
    p: () => acts.togglePause(),
    r: () => acts.reset(),
    h: () => hud.open(hud.root.hidden),
    f: () => theatre.toggle(),
    '/': () => element('prompt-text', HTMLInputElement).focus(),
    '?': () => help.toggle(),
  },
});
listenToPads({
  controls: () => world.welcome?.controls ?? [],
  listens: isListening,
  press: (source, key, down) => press(source, key, down),
  level: (source, control, value) => {
    if (!world.shared || world.mine?.controls.includes(control)) room.level(control, value, source);
    pressed();
  },
  look: (dx, dy) => room.pointer(dx, dy),
  letGo,
  button: (button) => {
    if (!element('notice', HTMLElement).hidden && button === 0) element('notice-act', HTMLButtonElement).click();
    else if (button === START) acts.togglePause();
    else if (button === SELECT) help.toggle();
  },
});
listenToLook(frame, {
  looks: () => world.drives && world.welcome?.pointer === true && notice.root.hidden,
  look: (dx, dy) => room.pointer(dx, dy),
  locked: (on) => on && toast('Move the mouse to look around; Escape lets go'),
});

// ---- what the server says ---------------------------------------------------------------------------------------------

room.on('track', (track) => void picture.show(track));
room.on('closing', () => picture.freeze());
room.on('welcome', arrive);
room.on('problem', ({ detail }) => toast(detail));
room.on('message', (message) => {
  if (message.type === 'receipt' && !picture.tells) caps.applied(message.applied);
  if (message.type === 'sidebyside') futures.stand(message.places, message.earlier === true);
  if (message.type === 'promptsplanned') promptBox.line.planned.tell(message.prompts);
  if (message.type === 'promptchanged') promptBox.changed(world.prompt);
  if (message.type === 'adapterschanged') adapters.changed(world.stack);
});
room.on('frame', ({ receipt }) => {
  if (receipt !== world.onScreen) return;
  caps.applied(receipt.applied);
  promptBox.seen(receipt);
  seekBar.seen(receipt.chunk);
  early.hidden = receipt.preview !== true;
  if (receipt.input_seq > 0) hint.done();
});
room.on('world', () => {
  people.show(world);
  caps.own(world.mine?.controls ?? null);
  if (world.welcome && !world.welcome.replay && world.mine) {
    const own = world.mine.controls.flatMap((index) => world.welcome?.controls[index] ?? []);
    const touch = matchMedia('(pointer: coarse)').matches;
    hint.offer(own, { touch, looks: world.welcome.pointer === true, keyName: (code) => caps.keyName(code) });
  }
  showWorld();
});
room.on('link', (link) => {
  notice.update({ link, seen: link.phase === 'live' ? notice.now.seen : false });
  document.body.dataset.phase = link.phase;
  if (link.phase !== 'live') {
    caps.applied([]);
    early.hidden = true;
  }
  pressed();
  showWorld();
});

/** @param {Welcome} welcome */
function arrive(welcome) {
  document.title = `${welcome.title} · Worldroom`;
  document.documentElement.style.setProperty('--ratio', String(welcome.width / welcome.height));
  for (const id of ['title', 'title-shown']) say(element(id, HTMLElement), welcome.title);
  steering.clear();
  for (const control of welcome.controls) for (const key of control.keys) steering.add(key);
  caps.show(welcome.controls);
  caps.unlatch();
  caps.applied([]);
  const looks = welcome.pointer === true;
  frame.classList.toggle('looks', looks);
  help.about(welcome.controls, looks);
  promptBox.suggest(welcome.suggestions, welcome.recache === true, welcome.prompt_chars ?? 0, welcome.prompts_max ?? 1);
  promptBox.pace(welcome.fps);
  promptBox.changed(world.prompt);
  futures.stand([], false);
  promptBox.line.planned.tell([]);
  seekBar.offer(welcome.replay_chunks ?? 0, welcome.counterfactual ?? '');
  firstFrame.offer(welcome.first_frame ?? null);
  adapters.offer(welcome.adapters ?? [], world.stack);
  notice.lease_s = welcome.lease_s ?? 0;
  people.begin();
  if (!welcome.replay) remember(browser, { room: name, title: welcome.title });
  if (world.fresh) {
    toast('This is a new world: the one before has ended', { for_ms: 8000 });
    speak('This is a new world: the one before has ended');
  }
  notice.update({ seen: false });
}

/** Steers that fail say why. @param {Promise<unknown>} fate */
function tell(fate) {
  fate.catch((error) => toast(error.message));
}

// ---- what the person sees -----------------------------------------------------------------------------------------------

function showWorld() {
  const { state, drives } = world;
  const replays = Boolean(world.welcome?.replay);
  const steers = drives && !replays;
  const { phase } = room.link;
  const live = phase === 'live';
  const flows = live && state === 'running' && notice.now.seen && !notice.now.blocked && frames.fresh;
  notice.update({ world: state, drives, replays });
  document.body.dataset.world = state;
  document.body.dataset.role = drives ? 'driver' : 'spectator';
  document.body.dataset.shows = flows || (live && notice.now.seen && state !== 'running') ? 'frames' : 'nothing';
  say(element('state-text', HTMLElement), nameOf(phase, state, flows, drives, replays));
  acts.state(state, live, drives, replays);
  element('keep-picture', HTMLButtonElement).disabled = video.videoWidth === 0;
  say(element('hud-hint', HTMLElement), drives ? 'Press a key to measure' : 'Whoever drives can measure');
  promptBox.enable(whyNoPrompt(live, world));
  seekBar.enable(live && drives && replays && state !== 'closed');
  futures.enable(live && steers && state === 'running');
  firstFrame.enable(live && steers && state !== 'opening' && state !== 'closed');
  adapters.enable(live && steers && state !== 'closed');
}

function startAnew() {
  room.seat.forget();
  room.start();
}

// Who goes back to the lobby gives seat and wheel up; the message needs a moment on its way.
element('home', HTMLAnchorElement).addEventListener('click', (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey || room.link.phase !== 'live') return;
  event.preventDefault();
  void room.leave().then(() => location.assign(base));
});
addEventListener('pagehide', () => room.stop('the page is left'));
addEventListener('pageshow', (event) => {
  if (event.persisted) room.start();
});
glow(video);

/** For the console and for tests. */
Object.assign(globalThis, { worldroom: { room, latency, world, hud, held: hold } });
room.start();
