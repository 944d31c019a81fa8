/** The library: all sessions of this server, or the one that the address names. */

import { element } from '../page/dom.js';
import { List } from './list.js';
import { Server } from './server.js';
import { SessionView } from './session.js';

const url = new URL(location.href);
const server = new Server(new URLSearchParams(url.hash.slice(1)).get('token'));
const session = url.searchParams.get('session');

/** @param {string | null} name */
function addressOf(name) {
  const address = new URL(location.href);
  if (name === null) address.searchParams.delete('session');
  else address.searchParams.set('session', name);
  return `library${address.search}${address.hash}`;
}

element('back', HTMLAnchorElement).href = addressOf(null);
if (session !== null) {
  void new SessionView(server, session).show();
} else {
  const offset = Math.max(0, Number.parseInt(url.searchParams.get('offset') ?? '0', 10) || 0);
  void new List(server, addressOf, { offset, card: url.searchParams.get('card') ?? '' }).show();
}
