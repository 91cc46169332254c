// Actions: each says what it will do before it does it.

import { html, useEffect, useRef, useState } from './vendor/preact.js';
import { may } from './store.js';
import { plain } from './text.js';

let show = () => {};

// confirm asks before it runs an action. effect says what will happen. If the
// answer is lost and the user tries again, the request has the same id.
export const confirm = ({ title, button = title, effect, done, ...question }) => show({ ...question, title: plain(title), button: plain(button), effect: plain(effect), done: plain(done), id: crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}` });

// Dialog asks the question, runs the action, and says how that went.
export function Dialog() {
  const [question, ask] = useState(null), [busy, wait] = useState(false), [done, say] = useState(''), [fault, blame] = useState('');
  const box = useRef(), asked = useRef(); // asked: the question that is open now
  show = q => { asked.current = q; blame(''); say(''); wait(false); ask(q); };
  useEffect(() => {
    if (!question || box.current.open) return;
    box.current.showModal();
    document.getElementById(question.grave ? 'confirm-no' : 'confirm-yes').focus();
  }, [question]);
  const close = () => { asked.current = null; box.current.close(); ask(null); };
  const yes = async event => {
    event.preventDefault();
    wait(true);
    const fault = await question.run(question.id).then(() => '', err => err.message);
    if (asked.current === question) { // and not closed meanwhile, or another
      wait(false);
      if (fault) return blame(fault);
      close();
    }
    say(fault ? `${question.title} was not done: ${fault}` : question.done);
  };
  return html`<dialog id="confirm" ref=${box} aria-labelledby="confirm-title" aria-describedby="confirm-effect" onCancel=${close}>
      ${question && html`<form method="dialog" onSubmit=${yes}><h2 id="confirm-title">${question.title}</h2><p id="confirm-effect">${question.effect}</p>
      ${fault && html`<p class="fault" id="problems" role="alert">It was not done: ${fault}</p>`}
      <p class="buttons"><button id="confirm-no" type="button" onClick=${close}>Cancel</button>
      <button id="confirm-yes" class=${question.grave ? 'grave' : 'main'} disabled=${busy}>${question.button}</button></p></form>`}
    </dialog>
    <div id="status" role="status">${done && html`<p class="done">${done} <button class="plain" aria-label="Dismiss" onClick=${() => say('')}>×</button></p>`}</div>`;
}

// Action is a button for those who may make the call that it leads to. In a list,
// of says to a screen reader to what it does it.
export function Action({ name, needs, label, of, question, disabled, grave }) {
  if (!may(needs)) return null;
  return html`<button data-action=${name} aria-label=${of ? `${label} ${of}` : undefined} class=${grave ? 'grave' : ''} disabled=${disabled} onClick=${() => confirm({ title: label, grave, ...question() })}>${label}…</button>`;
}
