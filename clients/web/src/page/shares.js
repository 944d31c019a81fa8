/** The shares of a mix in whole percent: each at least one, together a hundred. Pure. */

const WHOLE = 100;
const LEAST = 1;

/** So many percent among parts, in proportion to them, and each at least one. @param {number[]} parts @param {number} [whole] @returns {number[]} */
export function spread(parts, whole = WHOLE) {
  const free = whole - LEAST * parts.length;
  const above = parts.map((part) => Math.max(0, part - LEAST));
  const sum = above.reduce((total, part) => total + part, 0);
  const exact = above.map((part) => free * (sum > 0 ? part / sum : 1 / parts.length));
  const shares = exact.map((part) => LEAST + Math.floor(part));
  const lost = whole - shares.reduce((total, share) => total + share, 0);
  const byRest = [...exact.keys()].sort((a, b) => ((exact[b] ?? 0) % 1) - ((exact[a] ?? 0) % 1));
  for (const index of byRest.slice(0, lost)) shares[index] = (shares[index] ?? 0) + 1;
  return shares;
}

/** One share is set, the others keep their proportions. @param {number[]} shares @param {number} index @param {number} wanted */
export function turned(shares, index, wanted) {
  const share = Math.min(WHOLE - LEAST * (shares.length - 1), Math.max(LEAST, Math.round(wanted)));
  const rest = spread(shares.filter((_, each) => each !== index), WHOLE - share);
  return shares.length === 1 ? [WHOLE] : rest.toSpliced(index, 0, share);
}

/** One more text, which gets as much as the others have on average. @param {number[]} shares */
export function joined(shares) {
  return spread([...shares, WHOLE / shares.length]);
}

/** One text fewer. @param {number[]} shares @param {number} index */
export function without(shares, index) {
  return spread(shares.filter((_, each) => each !== index));
}

/** A prompt in words: its text, or the texts of a mix with their shares. @param {{ text: string, weight?: number, others?: import('../../sdk/messages.js').WeighedText[] }} prompt */
export function mixed({ text, weight = 1, others = [] }) {
  if (others.length === 0) return text;
  const texts = [{ text, weight }, ...others];
  const sum = texts.reduce((total, { weight: each = 1 }) => total + each, 0);
  return texts.map((each) => `${Math.round((WHOLE * (each.weight ?? 1)) / sum)} % ${each.text}`).join(' + ');
}
