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
      const text = 'next' in time.dataset && moment <= Date.now() ? 'now' : ago(moment);
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

  const told = new WeakMap(); // of buttons that tell how it went: what they said before

  document.addEventListener('click', async (event) => {
    const button = event.target.closest('[data-copy], [data-copy-from]');
    if (!button) return;
    let outcome = 'Copied';
    try {
      await copy(button.dataset.copy ?? document.getElementById(button.dataset.copyFrom).textContent);
    } catch {
      outcome = 'Copy failed: select the text instead';
    }
    button.focus();
    tellOutcome(button, outcome);
  });

  // tellOutcome has a button say how it went, and then what it said at first.
  function tellOutcome(button, outcome) {
    const wide = button.classList.contains('wide');
    const before = told.get(button) ?? { label: button.getAttribute('aria-label'), text: button.textContent };
    clearTimeout(before.timer);
    told.set(button, before);
    button.classList.add('done');
    button.setAttribute('aria-label', outcome);
    if (wide) button.textContent = outcome;
    before.timer = setTimeout(() => {
      told.delete(button);
      button.classList.remove('done');
      if (before.label === null) button.removeAttribute('aria-label'); else button.setAttribute('aria-label', before.label);
      if (wide) button.textContent = before.text;
    }, 1600);
  }

  // Live parts: after an event the page is fetched again, and those of its
  // parts that differ take the place of the old ones.
  const source = new Map(); // what the server last wrote of each part
  const parts = (within) => within.querySelectorAll('[data-live-part]');
  for (const part of parts(document)) source.set(part.dataset.livePart, part.outerHTML);

  // selectorOf tells an element of a part from most others.
  function selectorOf(element) {
    if (element.localName === 'summary' && element.parentElement.id) return '#' + CSS.escape(element.parentElement.id) + ' > summary';
    for (const name of ['id', 'href', 'data-copy', 'data-copy-from', 'name', 'aria-label', 'aria-labelledby']) {
      const value = element.getAttribute(name);
      if (value) return element.localName + '[' + name + '="' + CSS.escape(value) + '"]';
    }
    return [element.localName, ...[...element.classList].map((c) => CSS.escape(c))].join('.');
  }

  // twinFinder returns a function that finds in a later version of the part
  // what the element is now; undefined where that is gone.
  function twinFinder(part, element) {
    if (element === part) return (fresh) => fresh;
    const selector = selectorOf(element);
    const index = [...part.querySelectorAll(selector)].indexOf(element);
    return (fresh) => {
      const alike = fresh.querySelectorAll(selector);
      return alike[Math.min(index, alike.length - 1)];
    };
  }

  // swap puts a fresh part in the place of the old one, and leaves readers
  // where they are: what has the focus, is open or scrolled stays so.
  function swap(old, fresh) {
    const focused = old.contains(document.activeElement) ? twinFinder(old, document.activeElement) : null;
    const open = new Set([...old.querySelectorAll('details[open][id]')].map((d) => d.id));
    const scrolled = [old, ...old.querySelectorAll('*')].filter((e) => e.scrollLeft || e.scrollTop)
      .map((e) => ({ twin: twinFinder(old, e), left: e.scrollLeft, top: e.scrollTop }));
    const part = document.importNode(fresh, true);
    for (const details of part.querySelectorAll('details[id]')) if (open.has(details.id)) details.open = true;
    tellTimes(part);
    part.classList.add('fresh');
    old.replaceWith(part);
    for (const { twin, left, top } of scrolled) {
      const element = twin(part);
      if (element) [element.scrollLeft, element.scrollTop] = [left, top];
    }
    if (!focused) return;
    focused(part)?.focus({ preventScroll: true });
    if (part.contains(document.activeElement)) return;
    part.tabIndex = -1;
    part.focus({ preventScroll: true });
  }

  // A page that is asked for again leaves the server time for others: it waits
  // for a multiple of what it took the last time, and not all pages ask at once.
  const shortest = 1000, longest = 60000;
  let asked = 0, pause = shortest, waiting = 0, fetching = false, again = false;

  async function refresh() {
    waiting = 0;
    fetching = true;
    asked = Date.now();
    let refused = 0; // for how long
    try {
      const response = await fetch(location.href, { headers: { Accept: 'text/html' }, cache: 'no-store' });
      if (response.redirected && new URL(response.url).pathname === '/login') return location.assign(response.url);
      if (response.status >= 500) refused = 1000 * (parseInt(response.headers.get('Retry-After'), 10) || 5);
      if (response.ok) show(new DOMParser().parseFromString(await response.text(), 'text/html'));
    } catch {
      // the server is away for a moment: the stream tells when it is back
    } finally {
      fetching = false;
      pause = Math.min(longest, Math.max(shortest, 5 * (Date.now() - asked), refused));
      if (again || refused) later();
      again = false;
    }
  }

  function show(fresh) {
    const found = new Map([...parts(fresh)].map((part) => [part.dataset.livePart, part]));
    for (const part of parts(document)) {
      const id = part.dataset.livePart, next = found.get(id);
      if (!next || next.outerHTML === source.get(id)) continue;
      source.set(id, next.outerHTML);
      swap(part, next);
    }
  }

  // later has the page fetched when it is time.
  function later() {
    if (fetching) again = true;
    else if (!waiting) waiting = setTimeout(refresh, Math.max(120, asked + pause - Date.now()) + Math.random() * pause / 2);
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
  // The first stream begins where the page was made, so that nothing is missed
  // and the page need not be fetched again; not where that was long ago, as it
  // would tell all that happened since.
  let since = main.dataset.liveSince;
  const tell = (text) => { if (state && state.textContent !== text) state.textContent = text; };

  function follow() {
    if (stream || document.hidden) return;
    let complete = Boolean(since) && performance.now() < 60000;
    const url = new URL(main.dataset.live, location.href);
    if (complete) url.searchParams.set('last_event_id', since);
    since = '';
    stream = new EventSource(url);
    stream.onopen = () => {
      retry = 0;
      tell('live');
      if (!complete) later();
      complete = false;
    };
    stream.onerror = () => {
      tell('reconnecting…');
      if (stream.readyState !== EventSource.CLOSED) return;
      leave();
      setTimeout(() => { later(); follow(); }, Math.min(60000, 3000 * 2 ** retry++));
    };
    for (const type of url.searchParams.get('types').split(',')) {
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

  // What was just done is told once, and not at each reload.
  const here = new URL(location.href);
  if (here.searchParams.has('saved')) {
    here.searchParams.delete('saved');
    history.replaceState(history.state, '', here);
  }

  tellTimes(document);
  setInterval(() => tellTimes(document), 20000);
})();
