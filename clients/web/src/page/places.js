/** Words for who drives what, where several people drive one world. Pure. */

/** @typedef {import('../../sdk/world.js').World} World */
/** @typedef {import('../../sdk/messages.js').PlaceView} PlaceView */

/** @param {World} world */
function votes(world) {
  return world.welcome?.drivers?.startsWith('vote') === true;
}

/** The controls of a place, where it has not all of them. @param {World} world @param {PlaceView} place */
function controls(world, { controls: own }) {
  const all = world.welcome?.controls ?? [];
  return own.length < all.length ? own.map((index) => all[index]?.name ?? '').join(', ') : '';
}

/** @param {World} world @param {PlaceView} place */
function player(world, place) {
  return (world.welcome?.players ?? 1) > 1 ? `player ${place.player + 1}` : '';
}

/** What who holds a place does, as a badge beside the name. @param {World} world @param {PlaceView} place */
export function badge(world, place) {
  const does = votes(world) ? 'votes' : ['drives', controls(world, place)].filter(Boolean).join(' ');
  const who = player(world, place);
  return who === '' ? does : does === 'drives' ? who : `${who} · ${does}`;
}

/** What this page does at its place. @param {World} world @param {PlaceView} place */
export function yours(world, place) {
  const who = player(world, place);
  const own = controls(world, place);
  const does = votes(world) ? 'You vote' : own === '' ? 'You drive' : `You steer ${own}`;
  return who === '' ? does : does === 'You drive' ? `You are ${who}` : `${does} as ${who}`;
}

/** A free place, as a button. @param {World} world @param {PlaceView} place */
export function take(world, place) {
  if (!world.shared) return 'Take the wheel';
  const own = controls(world, place);
  return votes(world) ? 'Join the vote' : own !== '' ? `Take ${own}` : `Be ${player(world, place) || 'a driver'}`;
}

/** Who drives, for somebody who does not. @param {World} world */
export function drivers(world) {
  const held = world.places.filter(({ holder }) => holder !== null);
  const names = held.map(({ holder }) => world.nameOf(holder)).filter((name) => name !== null);
  if (held.length === 0) return 'Nobody drives';
  if (names.length === 0) return held.length > 1 ? 'The drivers are away' : 'The driver is away';
  const verb = votes(world) ? ['votes', 'vote'] : ['drives', 'drive'];
  if (names.length === 1) return `${names[0]} ${verb[0]}`;
  return names.length === 2 ? `${names.join(' and ')} ${verb[1]}` : `${names.length} people ${verb[1]}`;
}

/** The room's rule, said once; '' where one drives at a time. @param {World} world */
export function rule(world) {
  if (!world.shared) return '';
  const most = world.places.length;
  if (votes(world)) return `Up to ${most} vote: the world does what most of those press who press anything.`;
  if (world.welcome?.drivers?.startsWith('controls')) return `${most} people share the controls; what nobody is there for, the first of them steers.`;
  return `${most} players, each with controls of their own.`;
}
