// Requests. The cookie of the session is sent by the browser; scripts cannot read it.

const header = { 'X-Leaf-Console': '1' };
let lost = () => {};

export class Problem extends Error {
  constructor(status, code, detail) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

// onLost sets what happens when a session has ended.
export function onLost(f) {
  lost = f;
}

async function call(path, options) {
  let reply;
  try {
    reply = await fetch(path, { ...options, headers: { ...header, ...(options && options.headers) }, cache: 'no-store', redirect: 'error' });
  } catch (e) {
    throw new Problem(0, 'unreachable', e.message);
  }
  const body = await reply.json().catch(() => ({}));
  if (reply.ok) return body;
  if (reply.status === 401 && !path.startsWith('api/login')) lost();
  throw new Problem(reply.status, body.code || '', body.detail || body.title || reply.statusText);
}

const query = (params) => {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(params || {})) if (v !== undefined && v !== null && v !== '') q.set(k, v);
  const s = q.toString();
  return s ? '?' + s : '';
};

export const read = (name, params) => call('api/' + name + query(params));
export const post = (name, body) => call('api/' + name, { method: 'POST', body: JSON.stringify(body || {}), headers: { 'Content-Type': 'application/json' } });
export const liveURL = (view, params) => 'api/live' + query({ view, ...params });

// admin asks the administrator's interface, the same that the commands use.
export function admin(method, path, params, body) {
  const options = { method };
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers = { 'Content-Type': 'application/json' };
  }
  return call('../v1/' + path + query(params), options);
}
