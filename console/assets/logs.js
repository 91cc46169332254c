// The output of a container, as it comes.

import { html, useEffect, useRef, useState } from './vendor/preact.js';
import { cellPath, ownFeed, wait, whileSeen } from './api.js';
import { may } from './store.js';
import { Choice, Fault } from './parts.js';
import { plain } from './text.js';

const most = 200_000; // characters that are kept

export function Logs({ cell, container, ended }) {
  const [stream, choose] = useState('stdout'), [text, set] = useState(''), [state, say] = useState('reading'), [error, blame] = useState(null), box = useRef(), stays = useRef(true);
  const allowed = may('cell/logs');
  useEffect(() => {
    if (!allowed) return;
    set('');
    const cut = new AbortController(), decoder = new TextDecoder();
    let pending = '', timer = 0, from = 0, failed = 0;
    const flush = () => { timer = 0; const more = pending; pending = ''; set(old => (old + more).slice(-most)); };
    const read = signal => ownFeed(cellPath(cell, 'logs'), { container_guid: container, stream, from, follow: !ended }, chunk => {
      failed = 0;
      from = chunk.next;
      if (!chunk.data) return;
      pending += decoder.decode(Uint8Array.from(atob(chunk.data), c => c.charCodeAt(0)), { stream: true });
      timer ||= setTimeout(flush, 100);
    }, signal);
    (async () => {
      while (!cut.signal.aborted) {
        blame(null); say('reading');
        try {
          await whileSeen(read, cut.signal);
          return say('ended');
        } catch (err) {
          if (cut.signal.aborted) return;
          if (err.status === 404 && from > 0) { blame(null); return say('ended'); } // the container went meanwhile
          blame(err);
          if (err.status < 500 && err.status !== 429) return say('cut'); // it will not become better
          say('again');
          await wait(Math.min(10_000, 250 * 2 ** ++failed), cut.signal);
        }
      }
    })();
    return () => { cut.abort(); clearTimeout(timer); };
  }, [cell, container, stream, ended, allowed]);
  useEffect(() => { if (stays.current && box.current) box.current.scrollTop = box.current.scrollHeight; }, [text]);
  if (!allowed) return html`<p class="quiet">Your role may not read logs.</p>`;
  return html`<div class="tools"><${Choice} label="Stream" value=${stream} choose=${choose} options=${['stdout', 'stderr', 'health'].map(s => [s, s])} />
      <span class="quiet">${{ reading: ended ? 'reading' : 'follows', ended: 'this is all there is', cut: 'no longer followed', again: 'was cut off, is followed again soon' }[state]}, ${plain(container)} on ${plain(cell)}</span></div>
    <${Fault} what="The log cannot be read" error=${error} />
    <pre class="log" tabindex="0" role="region" aria-label="Output" ref=${box} onScroll=${e => { const b = e.target; stays.current = b.scrollTop + b.clientHeight > b.scrollHeight - 30; }}>${text || (state === 'ended' ? 'It wrote nothing.' : '')}</pre>`;
}
