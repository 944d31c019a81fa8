import assert from 'node:assert/strict';
import { test } from 'node:test';

import { delay_s } from '../sdk/backoff.js';
import { caption } from '../src/page/futures.js';
import { covering, objection } from '../src/page/firstframe.js';
import { read } from '../sdk/messages.js';
import { ago, places, watchable } from '../src/lobby/lists.js';
import { words } from '../src/page/notice.js';
import { nameOf, whyNoPrompt } from '../src/page/state.js';
import { understanding } from '../src/page/promptline.js';
import { Words } from '../src/page/words.js';
import { whereIs } from '../sdk/index.js';
import { wellFormed } from '../sdk/room.js';
import { Silence } from '../sdk/silence.js';
import { memory } from '../sdk/storage.js';
import { figures, readStats } from '../sdk/stats.js';

test('waits grow from a third of a second to eight, spread over their upper half', () => {
  assert.equal(delay_s(0, 1), 0.3);
  assert.equal(delay_s(0, 0), 0.15);
  assert.equal(delay_s(3, 1), 2.4);
  assert.equal(delay_s(30, 1), 8);
});

test("the server's wish is honoured", () => {
  assert.equal(delay_s(0, 0, { retry_after_s: 5 }), 5);
  assert.equal(delay_s(9, 0.5, { retry_after_s: 5 }), 5.25);
});

test('while a seat waits nobody waits longer than a second for a network', () => {
  assert.equal(delay_s(9, 1, { unheard_s: 59 }), 1);
  assert.equal(delay_s(9, 1, { unheard_s: 61 }), 8);
});

test('a line is in doubt when questions bring no datagram, and not before', async () => {
  const silence = new Silence();
  let bytes = 7;
  const looks = async (/** @type {number} */ count) => {
    const found = [];
    for (let n = 0; n < count; n += 1) found.push(await silence.look(async () => bytes));
    return found.join(' ');
  };
  const say = () => [silence.heard(), (bytes += 1)];
  assert.equal(await looks(6), 'well ask ask ask doubt doubt');
  say();
  assert.equal(await looks(4), 'well ask ask ask');
  bytes += 1; // pictures still come
  assert.equal(await looks(3), 'ask ask doubt');
  say();
  silence.suspect();
  assert.equal(await looks(3), 'ask ask doubt', 'half a second after the network changed');
});

test('a server that is heard on the path and says nothing for four seconds is none', async () => {
  const silence = new Silence();
  let bytes = 0;
  for (let n = 0; n < 19; n += 1) assert.notEqual(await silence.look(async () => (bytes += 1)), 'over');
  assert.equal(await silence.look(async () => (bytes += 1)), 'over');
});

test('text that is no message of the server is nothing', () => {
  assert.equal(read('{"type":"pong","id":1,"sent_ms":2}')?.type, 'pong');
  for (const bad of ['', '{', 'null', '[]', '{"type":"novel"}', 7, new ArrayBuffer(2)]) assert.equal(read(bad), null);
});

test('stats survive absent fields', () => {
  const before = readStats(new Map([['v', { type: 'inbound-rtp', kind: 'video', framesDecoded: 100 }]]), 1000);
  const after = readStats(new Map([['v', { type: 'inbound-rtp', kind: 'video', framesDecoded: 124 }]]), 2000);
  assert.deepEqual(figures(before, after), { fps: 24, kbps: undefined, buffer_ms: undefined, rtt_ms: undefined });
  assert.equal(figures(readStats(new Map(), 0), readStats(new Map(), 1000)).fps, undefined);
});

test('stats are differences of two readings', () => {
  const entry = (/** @type {number} */ n) => ({
    type: 'inbound-rtp', kind: 'video', framesDecoded: 24 * n, bytesReceived: 250000 * n,
    jitterBufferDelay: 0.0096 * n, jitterBufferEmittedCount: 24 * n,
  });
  const { kbps, buffer_ms } = figures(readStats([['v', entry(1)]], 1000), readStats([['v', entry(2)]], 2000));
  assert.equal(kbps, 2000);
  assert.equal(buffer_ms?.toFixed(3), '0.400');
});

test('a picture covers the world and what stands over is cut off evenly', () => {
  assert.deepEqual(covering({ width: 400, height: 100 }, { width: 64, height: 48 }).map(Math.round), [133, 0, 133, 100]);
  assert.deepEqual(covering({ width: 48, height: 96 }, { width: 64, height: 48 }), [0, 30, 48, 36]);
  assert.equal(objection({ type: 'image/jpeg', size: 50e6 }), null);
  assert.equal(objection({ type: 'video/mp4', size: 1e6 }), null);
  assert.match(objection({ type: 'video/webm', size: 40e6 }) ?? '', /larger than 32 MB/);
  assert.match(objection({ type: 'text/html', size: 1 }) ?? '', /PNG, JPEG or WebP/);
});

const now = (/** @type {object} */ news) => words(/** @type {any} */ ({
  link: { phase: 'live' }, world: 'running', seen: true, blocked: false, drives: true, wait_s: 0, held_s: null, ...news,
}));

test('case 87: what a browser recorded says its codecs too and is a video all the same', () => {
  assert.equal(objection({ type: 'video/webm;codecs=vp9,opus', size: 1e6 }), null);
  assert.equal(objection({ type: 'VIDEO/MP4; codecs="avc1"', size: 1e6 }), null);
});

test('every state of the connection has words', () => {
  assert.equal(now({}), null);
  assert.equal(now({ seen: false })?.title, 'Waiting for the picture');
  const full = (/** @type {number} */ queue_place) => now({ link: { phase: 'full', code: 'no_slot', until_ms: 0, queue_place, detail: '' }, wait_s: 7 });
  assert.equal(full(0)?.text, 'All it can carry is taken. Trying again in 7 s.');
  assert.equal(full(2)?.text, 'You are number 2 in line. The room opens by itself when it is your turn.');
  const lost = (/** @type {number} */ failures) => ({ phase: 'lost', until_ms: 0, detail: '', failures, stopped: false, since_ms: 1 });
  assert.equal(now({ link: lost(0) })?.title, 'Reconnecting');
  assert.equal(now({ link: lost(5) })?.title, 'The server does not answer');
  const stopped = now({ link: { ...lost(1), stopped: true }, wait_s: 3 });
  assert.deepEqual([stopped?.title, stopped?.text], ['The server has stopped', 'It may be starting again. Trying again in 3 s.']);
  assert.equal(now({ link: { phase: 'elsewhere' } })?.act, 'Take it back');
});

test('a replay is called one, takes no words, and can be watched again', () => {
  assert.equal(nameOf('live', 'running', true, true, true), 'Replay');
  assert.equal(nameOf('live', 'running', true, true, false), 'Live');
  const world = (/** @type {string} */ replay) => /** @type {any} */ ({ state: 'running', drives: true, welcome: { replay } });
  assert.match(whyNoPrompt(true, world('a1')), /can be watched, paused and moved in/);
  assert.equal(whyNoPrompt(true, world('')), '');
  assert.equal(now({ link: { phase: 'ended' }, replays: true })?.act, 'Watch again');
  assert.equal(now({ link: { phase: 'ended' }, replays: false })?.act, 'Start a new one');
});

test('case 61: a lost line promises no more than the page knows', () => {
  const lost = (/** @type {number | null} */ held_s) => now({ link: { phase: 'lost', until_ms: 0, detail: '', failures: 0, stopped: false, since_ms: 1 }, held_s })?.text;
  assert.equal(lost(null), 'The connection broke.');
  assert.equal(lost(50), 'The connection broke. A server that is still there holds the world for 50 s more.');
  assert.match(lost(0) ?? '', /it may be gone/);
});

test('case 47: a picture that the browser does not start stands there until somebody starts it', () => {
  assert.deepEqual([now({ blocked: true })?.act, now({ blocked: true })?.still], ['Play', true]);
});

test('what the world made of the words is named, and what it did not', () => {
  assert.equal(understanding({ understood: ['snowy', 'night'], missed: ['dinosaur'] }), '(snowy, night; not understood: dinosaur)');
  assert.equal(understanding({ understood: [], missed: [] }), '');
});

test('case 49: storage that is blocked, full or absent is no reason not to play', () => {
  const forms = [
    () => { throw new DOMException('blocked', 'SecurityError'); },
    () => undefined,
    () => null,
    () => ({ getItem: () => null, setItem: () => { throw new DOMException('full', 'QuotaExceededError'); }, removeItem: () => {} }),
    () => ({ getItem: () => { throw new Error(); }, setItem: () => { throw new Error(); }, removeItem: () => { throw new Error(); } }),
  ];
  for (const form of forms) {
    const kept = memory(/** @type {any} */ (form));
    assert.equal(kept.get('a'), null);
    kept.set('a', '1');
    assert.equal(kept.get('a'), '1');
    kept.remove('a');
    assert.equal(kept.get('a'), null);
  }
});

test('earlier prompts come back by arrow up, and the draft after them', () => {
  const kept = memory(/** @type {any} */ (() => null));
  const box = new Words('otter', kept);
  box.sent('a red desert');
  box.sent('snowy night');
  box.sent('a red desert');
  box.typed('sun');
  assert.deepEqual([box.walk(1), box.walk(1), box.walk(1)], ['a red desert', 'snowy night', 'snowy night']);
  assert.deepEqual([box.walk(-1), box.walk(-1), box.walk(-1)], ['a red desert', 'sun', 'sun']);
  assert.equal(new Words('otter', kept).draft, 'sun');
  assert.equal(new Words('heron', kept).draft, '');
});

test('the address of a room, also under a path', () => {
  assert.deepEqual(Object.values(whereIs('http://h:8080/r/blue-otter-12?watch')).slice(0, 2), ['http://h:8080/', 'blue-otter-12']);
  assert.deepEqual(Object.values(whereIs('https://h/worlds/r/a/')).slice(0, 2), ['https://h/worlds/', 'a']);
});

test('case 54: half of a surrogate pair becomes a sign that can travel', () => {
  assert.equal(wellFormed('a\ud83d b \ud83d\ude00'), 'a\ufffd b \ud83d\ude00');
});

/** A card's entry of a device. @param {string} card @param {number} sessions @param {number} most @param {object} more */
function entry(card, sessions, most, more = {}) {
  const one = { card, device: 'gpu0', sessions, asleep: 0, sessions_max: most, waiting: 0, share_max: 0.8, price_us: 100, chunk_us: 1000, ...more };
  return { ...one, share_used: ((one.sessions - one.asleep) * one.price_us) / one.chunk_us };
}

test('cards of one device share its time, so their places are not added', () => {
  const dear = { price_us: 400 };
  assert.equal(places([entry('drive', 0, 8), entry('wan', 0, 2, dear)]), '8 of 8 places free');
  assert.equal(places([entry('drive', 4, 8), entry('wan', 1, 2, dear)]), 'All 5 places taken: you stand in line');
  assert.equal(places([entry('drive', 1, 8), entry('wan', 0, 2, dear)], 'wan'), '1 of 1 places free');
  assert.equal(places([entry('drive', 0, 2), entry('wan', 0, 2, dear)]), '3 of 3 places free', 'two have a place, one more has time');
  assert.equal(places([entry('drive', 0, 1, { price_us: 3000 })]), '1 of 1 places free', 'alone it may be slow');
});

test('the lobby names places, rooms and times', () => {
  assert.equal(places([entry('drive', 3, 8)]), '5 of 8 places free');
  assert.equal(places([entry('drive', 8, 8, { waiting: 2 })]), 'All 8 places taken, 2 in line');
  assert.equal(places([entry('drive', 1, 1)]), 'The only place is taken: you stand in line');
  assert.equal(places([entry('drive', 8, 8), entry('drive', 2, 8, { device: 'gpu1' })]), '6 of 16 places free');
  assert.equal(places([entry('drive', 8, 8, { asleep: 2 })]), '2 of 8 places free', 'who sleeps has none');
  assert.equal(places([]), '');
  assert.equal(ago(90_000), '1 min ago');
  assert.equal(ago(3 * 3_600_000), '3 h ago');
  const view = (/** @type {string} */ room, /** @type {number} */ viewers) => ({ room, viewers, card: 'toy', state: 'running', driver: true });
  assert.deepEqual(watchable([view('a', 1), view('b', 0), view('c', 3)]).map(({ room }) => room), ['c', 'a']);
});

test('a date in Retry-After is no number of seconds: the page backs off by itself', () => {
  assert.equal(delay_s(0, 0, { retry_after_s: Number('Wed, 21 Oct 2099 07:28:00 GMT') || 0 }), 0.15);
});

test('a future says how it differs', () => {
  const view = { branch: 2, prompt: '', held: [] };
  assert.equal(caption(view, 0), '1: as it was');
  assert.equal(caption(view, 1), '2: another chance');
  assert.equal(caption({ ...view, prompt: 'a red desert' }, 2), '3: “a red desert”');
  assert.equal(caption({ ...view, held: ['ArrowLeft'] }, 3), '4: ArrowLeft');
});

test('futures side by side are news of the server', () => {
  assert.equal(read('{"type":"sidebyside","chunk":7,"places":[]}')?.type, 'sidebyside');
});
