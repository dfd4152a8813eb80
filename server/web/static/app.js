// What pages gain by a script: live parts, copy buttons, times of here. Every
// page works without.
(() => {
  'use strict';
  const root = document.documentElement;
  const main = document.getElementById('main');
  const state = document.getElementById('live');
  root.classList.add('js');

  // Times: relative while that says more, else of the reader's own zone. The
  // title has both it and UTC.
  const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
  const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });
  const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'long' });
  const units = [['second', 60], ['minute', 60], ['hour', 24], ['day', 30]];

  function ago(moment) {
    let n = (moment - Date.now()) / 1000;
    if (Math.abs(n) < 5) return 'just now';
    for (const [unit, size] of units) {
      if (Math.abs(n) < size) return relative.format(Math.round(n), unit);
      n /= size;
    }
    return day.format(moment);
  }

  function tellTimes(within) {
    for (const time of within.querySelectorAll('time[datetime]')) {
      const moment = new Date(time.dateTime);
      if (isNaN(moment)) continue;
      const text = ago(moment);
      if (time.textContent !== text) time.textContent = text;
      const title = exact.format(moment) + '\n' + moment.toISOString().replace('T', ' ').replace('Z', ' UTC');
      if (time.title !== title) time.title = title;
    }
  }

  // Copy buttons.
  async function copy(text) {
    if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
    const area = document.createElement('textarea');
    area.className = 'off';
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    if (!done) throw new Error('not copied');
  }

  document.addEventListener('click', async (event) => {
    const button = event.target.closest('[data-copy], [data-copy-from]');
    if (!button) return;
    const label = button.getAttribute('aria-label');
    const text = button.classList.contains('wide') ? button.textContent : null;
    let told = 'Copied';
    try {
      await copy(button.dataset.copy ?? document.getElementById(button.dataset.copyFrom).textContent);
    } catch {
      told = 'Not copied: select it instead';
    }
    button.focus();
    button.classList.add('done');
    button.setAttribute('aria-label', told);
    if (text !== null) button.textContent = told;
    setTimeout(() => {
      button.classList.remove('done');
      if (label === null) button.removeAttribute('aria-label'); else button.setAttribute('aria-label', label);
      if (text !== null) button.textContent = text;
    }, 1600);
  });

  // Live parts: after an event the page is fetched again, and those of its
  // parts that differ take the place of the old ones.
  const source = new Map(); // what the server last wrote of each part
  const parts = (within) => within.querySelectorAll('[data-live-part]');
  for (const part of parts(document)) source.set(part.dataset.livePart, part.outerHTML);

  function focusKey(element) {
    for (const name of ['id', 'href', 'data-copy', 'data-copy-from', 'name']) {
      const value = element.getAttribute(name);
      if (value) return element.localName + '[' + name + '="' + CSS.escape(value) + '"]';
    }
    return null;
  }

  function swap(old, fresh) {
    const focused = old.contains(document.activeElement) ? focusKey(document.activeElement) : null;
    const open = new Set([...old.querySelectorAll('details[open][id]')].map((d) => d.id));
    const scrolled = [old.scrollLeft, old.scrollTop];
    const part = document.importNode(fresh, true);
    for (const details of part.querySelectorAll('details[id]')) if (open.has(details.id)) details.open = true;
    tellTimes(part);
    part.classList.add('fresh');
    old.replaceWith(part);
    [part.scrollLeft, part.scrollTop] = scrolled;
    if (focused) part.querySelector(focused)?.focus({ preventScroll: true });
  }

  let asked = 0, waiting = 0, fetching = false;

  async function refresh() {
    waiting = 0;
    if (fetching) return later();
    fetching = true;
    asked = Date.now();
    try {
      const response = await fetch(location.href, { headers: { Accept: 'text/html' }, cache: 'no-store' });
      if (response.redirected && new URL(response.url).pathname === '/login') return location.assign(response.url);
      if (!response.ok) return;
      const fresh = new DOMParser().parseFromString(await response.text(), 'text/html');
      const found = new Map([...parts(fresh)].map((part) => [part.dataset.livePart, part]));
      for (const part of parts(document)) {
        const id = part.dataset.livePart, next = found.get(id);
        if (!next || next.outerHTML === source.get(id)) continue;
        source.set(id, next.outerHTML);
        swap(part, next);
      }
    } catch {
      // the server is away for a moment: the stream tells when it is back
    } finally {
      fetching = false;
    }
  }

  // later has the page fetched, at most once a second.
  function later() {
    if (!waiting) waiting = setTimeout(refresh, Math.max(120, asked + 1000 - Date.now()));
  }

  function concerns(event) {
    const commit = main.dataset.liveCommit;
    if (!commit || event.type === 'policy') return true;
    try {
      const told = JSON.parse(event.data);
      return told.commit === commit || told.other?.commit === commit;
    } catch {
      return true;
    }
  }

  let stream = null, retry = 0;
  const tell = (text) => { if (state && state.textContent !== text) state.textContent = text; };

  function follow() {
    if (stream || document.hidden) return;
    stream = new EventSource(main.dataset.live);
    stream.onopen = () => { retry = 0; tell('live'); later(); };
    stream.onerror = () => {
      tell('not live: connecting again');
      if (stream.readyState !== EventSource.CLOSED) return;
      leave();
      setTimeout(() => { later(); follow(); }, Math.min(60000, 3000 * 2 ** retry++));
    };
    for (const type of new URL(main.dataset.live, location.href).searchParams.get('types').split(',')) {
      stream.addEventListener(type, (event) => { if (concerns(event)) later(); });
    }
  }

  function leave() {
    stream?.close();
    stream = null;
  }

  if (main.dataset.live) {
    // Browsers allow few connections to one server: pages that nobody sees have none.
    document.addEventListener('visibilitychange', () => { if (document.hidden) leave(); else follow(); });
    addEventListener('pagehide', leave);
    addEventListener('pageshow', follow);
    follow();
  }

  tellTimes(document);
  setInterval(() => tellTimes(document), 20000);
})();
