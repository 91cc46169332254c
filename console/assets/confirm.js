// Actions: each says what it will do before it does it.

import { html, useEffect, useRef, useState } from './vendor/preact.js';
import { may } from './store.js';

let show = () => {};

// confirm asks before it runs an action. effect says what will happen. If the
// answer is lost and the user tries again, the request has the same id.
export const confirm = question => show({ ...question, id: crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}` });

// Dialog asks the question, runs the action, and says how that went.
export function Dialog() {
  const [question, ask] = useState(null), [busy, wait] = useState(false), [done, say] = useState(''), [fault, blame] = useState('');
  const box = useRef();
  show = q => { blame(''); say(''); ask(q); };
  useEffect(() => {
    if (!question || box.current.open) return;
    box.current.showModal();
    document.getElementById(question.grave ? 'confirm-no' : 'confirm-yes').focus();
  }, [question]);
  const close = () => { box.current.close(); ask(null); };
  const yes = async event => {
    event.preventDefault();
    wait(true);
    try {
      await question.run(question.id);
      say(question.done);
      close();
    } catch (err) {
      blame(err.message);
    }
    wait(false);
  };
  return html`<dialog id="confirm" ref=${box} aria-labelledby="confirm-title" aria-describedby="confirm-effect" onCancel=${() => ask(null)}>
      ${question && html`<form method="dialog" onSubmit=${yes}><h2 id="confirm-title">${question.title}</h2><p id="confirm-effect">${question.effect}</p>
      ${fault && html`<p class="fault" id="problems" role="alert">It was not done: ${fault}</p>`}
      <p class="buttons"><button id="confirm-no" type="button" onClick=${close}>Cancel</button>
      <button id="confirm-yes" class=${question.grave ? 'grave' : 'main'} disabled=${busy}>${question.button || question.title}</button></p></form>`}
    </dialog>
    <div id="status" role="status">${done && html`<p class="done">${done} <button class="plain" aria-label="Dismiss" onClick=${() => say('')}>×</button></p>`}</div>`;
}

// Action is a button for those who may make the call that it leads to.
export function Action({ name, needs, label, question, disabled, grave }) {
  if (!may(needs)) return null;
  return html`<button data-action=${name} class=${grave ? 'grave' : ''} disabled=${disabled} onClick=${() => confirm({ title: label, grave, ...question() })}>${label}…</button>`;
}
