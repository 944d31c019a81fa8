/** What a seat may ask of its room over HTTP. */

/**
 * @param {string} address
 * @param {string | null} token of the seat
 * @param {string} method
 * @param {string} otherwise said where the server gives no reason
 * @returns {Promise<Response>} of a success; rejects with the server's reason
 */
export async function seated(address, token, method, otherwise) {
  const answer = await fetch(address, { method, headers: { Authorization: `Bearer ${token ?? ''}` } });
  if (answer.ok) return answer;
  throw new Error(String((await answer.json().catch(() => null))?.detail ?? otherwise));
}
