/** What the library says of sessions and of what happened in them. Pure. */

/**
 * @typedef {{ name: string, frames: number, ticks: number, fps: number, bytes: number, width: number, height: number,
 *   activity: number[], cut_short: string }} Film
 */
/**
 * @typedef {{ session: string, room: string, card: string, opened: number, seconds: number, entries: number,
 *   ended: boolean, cut: number, likes: number, dislikes: number, films: Film[] }} Session
 */
/** @typedef {{ total: number, offset: number, sessions: Session[], cards: Record<string, number> }} Page */
/**
 * @typedef {{ seconds: number, number: number, type: string, epoch: number, branch: number, chunk: number, text: string,
 *   value: number, at: number | null }} Mark
 */
/** @typedef {{ branch: number, epoch: number, at: number, until: number }} Span */
/** @typedef {{ chunk: number, left: Span, right: Span }} Fork */
/** @typedef {{ seconds: number, marks: Mark[], forks: Fork[] }} Timeline */
/** @typedef {{ session: Session, chunks: number, types: Record<string, number>, marks: Mark[] }} Detail */

/** 0:07, 12:30, 1:02:03. @param {number} seconds */
export function clock(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const padded = String(rest).padStart(2, '0');
  return hours ? `${hours}:${String(minutes).padStart(2, '0')}:${padded}` : `${minutes}:${padded}`;
}

/** Films that show something. @param {Session} session */
export function shownFilms(session) {
  return session.films.filter(({ frames }) => frames > 0);
}

/** The last film that is whole. @param {Session} session */
export function lastFilm(session) {
  return shownFilms(session).at(-1) ?? null;
}

/** @param {Session} session */
export function about(session) {
  const films = shownFilms(session).length;
  const parts = [clock(session.seconds)];
  if (session.likes) parts.push(`${session.likes} ${session.likes === 1 ? 'like' : 'likes'}`);
  if (session.dislikes) parts.push(`${session.dislikes} ${session.dislikes === 1 ? 'dislike' : 'dislikes'}`);
  parts.push(films === 0 ? 'not filmed' : films === 1 ? '1 film' : `${films} films`);
  if (!session.ended) parts.push('going on');
  if (session.cut) parts.push('beginning not kept');
  return parts.join(' · ');
}

/** Kinds of marks that are shown, and what each is called. @type {Record<string, string>} */
const NAMES = {
  'session.epoch': 'Started anew',
  'session.turned': 'Another future',
  'session.joined': 'Somebody came',
  'session.left': 'Somebody left',
  'session.fault': 'Fault',
  'session.moved': 'World',
  'session.closed': 'The end',
  'preference.chosen': 'Chose a future',
  'weights.loaded': 'Other weights',
};

/** One line about a mark; null for what nobody looks for. @param {Mark} mark */
export function words(mark) {
  if (mark.type === 'prompt.asked') return mark.text.startsWith('redacted:') ? 'Words that were taken out' : `“${mark.text}”`;
  if (mark.type === 'preference.rated') return mark.value > 0 ? 'Like' : mark.value < 0 ? 'Dislike' : 'No like any more';
  if (mark.type === 'session.recording') return mark.value ? 'Filming begins' : 'Filming ends';
  const name = NAMES[mark.type];
  if (name === undefined) return null;
  return mark.text && mark.type !== 'session.joined' ? `${name}: ${mark.text}` : name;
}

/** How a mark looks. @param {Mark} mark @returns {'words' | 'like' | 'dislike' | 'turn' | 'other'} */
export function kind(mark) {
  if (mark.type === 'prompt.asked') return 'words';
  if (mark.type === 'preference.rated') return mark.value > 0 ? 'like' : 'dislike';
  return mark.type === 'session.turned' || mark.type === 'preference.chosen' || mark.type === 'session.epoch' ? 'turn' : 'other';
}
