// A live view: a stream of server-sent events, or a question every two seconds where the port
// has no streams. Nothing runs while the page is hidden.

import { liveURL, read } from './api.js';

export function live(session, view, params, show, state) {
  let source = null;
  let timer = 0;
  let closed = false;

  const again = (ms) => {
    clearTimeout(timer);
    if (!closed && !document.hidden) timer = setTimeout(open, ms);
  };
  const ask = async () => {
    try {
      const data = await read(view, params);
      if (closed) return false;
      show(data);
      state(true);
      return true;
    } catch (e) {
      if (!closed) state(false, e);
      return false;
    }
  };
  const open = async () => {
    stop();
    if (closed || document.hidden) return;
    if (!session.live) {
      await ask();
      again(2000);
      return;
    }
    source = new EventSource(liveURL(view, params));
    source.onmessage = (e) => {
      show(JSON.parse(e.data));
      state(true);
    };
    source.addEventListener('end', () => {
      stop();
      ask(); // finds that the session has ended
    });
    source.onerror = async () => {
      stop();
      await ask(); // says why, or works all the same where no stream is left
      again(3000);
    };
  };
  const stop = () => {
    clearTimeout(timer);
    if (source) source.close();
    source = null;
  };
  const turn = () => (document.hidden ? stop() : open());
  document.addEventListener('visibilitychange', turn);
  open();
  return {
    close() {
      closed = true;
      stop();
      document.removeEventListener('visibilitychange', turn);
    },
  };
}
