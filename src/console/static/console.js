// Renews the numbers of a page every few seconds. Without it everything works; one has to reload.
(() => {
  'use strict';
  const page = document.querySelector('[data-renew]');
  const renewed = document.getElementById('renewed');
  if (!page || !renewed) return;

  const every = Number(page.dataset.every) || 5000;
  const limit = 15000;
  let last = new Date(renewed.dataset.at || Date.now());
  let timer = null;
  let asking = false;

  const two = (n) => String(n).padStart(2, '0');
  const clock = (at) => `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}:${two(at.getUTCSeconds())} UTC`;

  const say = (words, state) => {
    renewed.textContent = words;
    renewed.className = `renewed ${state}`;
    document.documentElement.classList.toggle('is-stale', state === 'is-stale');
  };

  // only what differs is replaced, so that a pointer, a selection and an opened text stay where they are
  const put = (fresh) => {
    for (const part of fresh.querySelectorAll('[data-live]')) {
      const old = document.querySelector(`[data-live="${CSS.escape(part.dataset.live)}"]`);
      if (!old) continue;
      mark(old, part);
      if (old.outerHTML === part.outerHTML) continue;
      const focused = old.contains(document.activeElement) ? document.activeElement : null;
      const again = focused && (focused.id ? `#${CSS.escape(focused.id)}` : focused.getAttribute('href') && `[href="${CSS.escape(focused.getAttribute('href'))}"]`);
      for (const open of old.querySelectorAll('details[open][data-key]')) {
        const same = part.querySelector(`details[data-key="${CSS.escape(open.dataset.key)}"]`);
        if (same) same.open = true;
      }
      old.replaceWith(part);
      if (again) part.querySelector(again)?.focus({ preventScroll: true });
    }
    if (fresh.title) document.title = fresh.title;
  };

  // a number that changed since the last look is marked until the next one
  const mark = (old, part) => {
    for (const number of part.querySelectorAll('[data-number]')) {
      const before = old.querySelector(`[data-number="${CSS.escape(number.dataset.number)}"]`);
      if (before && before.textContent !== number.textContent) number.classList.add('has-changed');
    }
  };

  const ask = async () => {
    if (asking || document.hidden) return;
    asking = true;
    try {
      const answer = await fetch(page.dataset.renew, { headers: { Accept: 'text/html' }, cache: 'no-store', credentials: 'same-origin', redirect: 'manual', signal: AbortSignal.timeout(limit) });
      if (answer.type === 'opaqueredirect' || answer.status === 401 || answer.status === 403) {
        say('You are not signed in any more. Reload the page to sign in again.', 'is-stale');
        return;
      }
      if (!answer.ok && answer.status !== 503) throw new Error(String(answer.status));
      const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html');
      if (!fresh.querySelector('[data-live]')) throw new Error('another page');
      put(fresh);
      last = new Date();
      say(`renewed ${clock(last)}`, 'is-fresh');
    } catch {
      say(`Not renewed since ${clock(last)}: this console does not answer.`, 'is-stale');
    } finally {
      asking = false;
      plan();
    }
  };

  const plan = () => {
    clearTimeout(timer);
    timer = document.hidden ? null : setTimeout(ask, every);
  };

  document.addEventListener('visibilitychange', () => (document.hidden ? plan() : ask()));
  plan();
})();
