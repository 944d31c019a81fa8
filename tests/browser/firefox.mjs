// Drives Debian's Firefox over WebDriver BiDi: from the lobby into a room, plays, opens the library, and writes screenshots.
// node firefox.mjs <address> <folder for screenshots or ''>; prints one JSON object, complaints of the page included.
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [address, folder, modules] = process.argv.slice(2);
const require = createRequire(join(modules, 'package.json'));
const puppeteer = (await import(pathToFileURL(require.resolve('puppeteer-core')).href)).default;
const MEASURE = process.env.MEASURE;
const said = {};
const SIZES = {
  desktop: [1280, 800], portrait: [390, 844], landscape: [844, 390], zoom200: [640, 400], zoom400: [320, 200],
};

/** Brightness of the picture in a coarse grid, and what the connection says of its frames. */
const LOOK = `(async () => {
  const video = document.querySelector('video');
  const canvas = Object.assign(document.createElement('canvas'), { width: 64, height: 38 });
  const paper = canvas.getContext('2d');
  paper.drawImage(video, 0, 0, 64, 38);
  const pixels = [...paper.getImageData(0, 0, 64, 38).data].filter((_, place) => place % 4 === 1);
  const stats = [...(await worldroom.room.peer.pc.getStats()).values()];
  const inbound = stats.find((each) => each.type === 'inbound-rtp' && each.kind === 'video');
  const codec = stats.find((each) => each.id === inbound?.codecId)?.mimeType ?? '';
  return { pixels, codec, decoded: inbound?.framesDecoded ?? 0, size: [video.videoWidth, video.videoHeight] };
})()`;

/** Pictures that move: two looks a second apart. */
async function watch(page) {
  const first = await page.evaluate(LOOK);
  await new Promise((done) => setTimeout(done, 1000));
  const second = await page.evaluate(LOOK);
  said.frames = second.decoded - first.decoded;
  said.changed = second.pixels.filter((value, place) => Math.abs(value - first.pixels[place]) > 16).length;
  said.light = [Math.min(...second.pixels), Math.max(...second.pixels)];
  Object.assign(said, { size: second.size, codec: second.codec });
}

/** What a person does in the first minute. */
async function play(page) {
  await page.waitForFunction("document.body.dataset.shows === 'frames'", { timeout: 20000 });
  await watch(page);
  said.state = await page.evaluate("document.getElementById('state-text').textContent");
  await page.keyboard.down('ArrowLeft');
  const left = "document.querySelector('.cap[data-control=left]').classList.contains('applied')";
  await page.waitForFunction(left, { timeout: 15000 });
  await page.keyboard.up('ArrowLeft');
  await page.type('#prompt-text', 'a red desert');
  await page.keyboard.press('Enter');
  await page.waitForFunction("/^Applied/.test(document.getElementById('now-label').textContent)", { timeout: 15000 });
  said.played = true;
}

/** What was played is in the library, with what happened in it. */
async function lookBack(page) {
  await page.goto(`${address}/library`);
  await page.waitForFunction("document.querySelectorAll('.session').length > 0", { timeout: 20000 });
  await page.click('.session a');
  await page.waitForFunction("document.querySelectorAll('#events li').length > 0", { timeout: 20000 });
  said.events = await page.$$eval('#events li', (all) => all.map((each) => each.innerText));
  said.sideways = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
  if (folder) await page.screenshot({ path: `${folder}/firefox-library.png` });
}

const profile = mkdtempSync(join(tmpdir(), 'worldroom-firefox-'));
const browser = await puppeteer.launch({
  browser: 'firefox',
  executablePath: process.env.FIREFOX,
  headless: true,
  userDataDir: profile,
  extraPrefsFirefox: {
    'media.peerconnection.ice.loopback': true,
    'media.peerconnection.ice.obfuscate_host_addresses': false,
    'media.navigator.permission.disabled': true,
    'permissions.default.microphone': 1, // else it uses the address of the default route alone, and not loopback
    'media.autoplay.default': 0,
    'media.gmp-provider.enabled': false,
    'media.webrtc.hw.h264.enabled': true,
    'app.update.enabled': false,
    'browser.shell.checkDefaultBrowser': false,
    'datareporting.policy.dataSubmissionEnabled': false,
  },
});
Object.assign(said, { complaints: [], geometry: {}, version: await browser.version() });
try {
  const page = await browser.newPage();
  page.on('pageerror', (error) => said.complaints.push(String(error)));
  page.on('console', (message) => ['error'].includes(message.type()) && said.complaints.push(message.text()));
  await page.setViewport({ width: 1280, height: 800 });
  await page.goto(`${address}/`);
  await page.waitForFunction("document.querySelectorAll('.world').length > 0", { timeout: 20000 });
  said.worlds = await page.$$eval('.world h3', (all) => all.map((each) => each.textContent));
  if (folder) await page.screenshot({ path: `${folder}/firefox-lobby.png` });
  await page.click('#play');
  await page.waitForFunction("location.pathname.startsWith('/r/')", { timeout: 20000 });
  await page.waitForFunction("document.body.dataset.phase !== 'connecting'", { timeout: 20000 });
  said.phase = await page.evaluate('document.body.dataset.phase');
  said.title = await page.evaluate("document.getElementById('notice-title').textContent");
  await play(page);
  for (const [name, [width, height]] of Object.entries(SIZES)) {
    await page.setViewport({ width, height });
    await new Promise((done) => setTimeout(done, 250));
    said.geometry[name] = (await page.evaluate(`(${MEASURE})(${['portrait', 'landscape'].includes(name)})`)).problems;
    if (folder) await page.screenshot({ path: `${folder}/firefox-${name}.png` });
  }
  await page.setViewport({ width: 390, height: 844 });
  await lookBack(page);
} catch (error) {
  said.failed = String(error);
} finally {
  await browser.close().catch(() => {});
  rmSync(profile, { recursive: true, force: true });
}
console.log(JSON.stringify(said));
