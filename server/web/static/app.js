// Progressive enhancement: live parts, copy buttons and local times. Every page
// works without this script.
(() => {
  'use strict';
  const root = document.documentElement;
  const main = document.getElementById('main');
  const status = document.getElementById('live');
  root.classList.add('js');

  // Times: relative if recent, otherwise in the reader's time zone. The title has
  // the exact time, local and in UTC. A time with data-next is that of a next
  // attempt; once it has passed, it reads "now".
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

  function updateTimes(within) {
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
    if (!done) throw new Error('copy failed');
  }

  const labels = new WeakMap(); // the original labels of buttons that show an outcome

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
    showOutcome(button, outcome);
  });

  // showOutcome shows the outcome as the button's label for a moment.
  function showOutcome(button, outcome) {
    const wide = button.classList.contains('wide');
    const original = labels.get(button) ?? { label: button.getAttribute('aria-label'), text: button.textContent };
    clearTimeout(original.timer);
    labels.set(button, original);
    button.classList.add('done');
    button.setAttribute('aria-label', outcome);
    if (wide) button.textContent = outcome;
    original.timer = setTimeout(() => {
      labels.delete(button);
      button.classList.remove('done');
      if (original.label === null) button.removeAttribute('aria-label'); else button.setAttribute('aria-label', original.label);
      if (wide) button.textContent = original.text;
    }, 1600);
  }

  // "/" and Ctrl-K go to the search box, unless somebody types.
  const find = document.getElementById('find');
  addEventListener('keydown', (event) => {
    const slash = event.key === '/' && !event.ctrlKey && !event.metaKey && !event.altKey;
    const letter = event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
    if (!find || !slash && !letter) return;
    if (event.target.closest('input, textarea, select, [contenteditable]')) return;
    event.preventDefault();
    find.focus();
    find.select();
  });

  // The current tab is in view, even if the tabs are wider than the window.
  function showTab() {
    for (const tab of document.querySelectorAll('.tabs [aria-current], .column-tabs [aria-current]')) {
      for (const box of [tab.closest('ul'), tab.closest('nav')]) {
        const within = box.getBoundingClientRect(), at = tab.getBoundingClientRect();
        if (at.right > within.right || at.left < within.left) box.scrollLeft += at.left - within.left - (within.width - at.width) / 2;
      }
    }
  }
  showTab();
  addEventListener('resize', showTab);

  // Live parts: after an event, the page is fetched again and the parts that
  // changed are replaced.
  const source = new Map(); // the HTML of each part as last sent by the server
  const parts = (within) => within.querySelectorAll('[data-live-part]');
  for (const part of parts(document)) source.set(part.dataset.livePart, part.outerHTML);

  // selectorOf returns a selector that matches the element and few others.
  function selectorOf(element) {
    if (element.localName === 'summary' && element.parentElement.id) return '#' + CSS.escape(element.parentElement.id) + ' > summary';
    for (const name of ['id', 'href', 'data-copy', 'data-copy-from', 'name', 'aria-label', 'aria-labelledby']) {
      const value = element.getAttribute(name);
      if (value) return element.localName + '[' + name + '="' + CSS.escape(value) + '"]';
    }
    return [element.localName, ...[...element.classList].map((c) => CSS.escape(c))].join('.');
  }

  // counterpart returns a function that finds the same element in a newer version
  // of the part. The function returns undefined if the element is gone.
  function counterpart(part, element) {
    if (element === part) return (fresh) => fresh;
    const selector = selectorOf(element);
    const index = [...part.querySelectorAll(selector)].indexOf(element);
    return (fresh) => {
      const matches = fresh.querySelectorAll(selector);
      return matches[Math.min(index, matches.length - 1)];
    };
  }

  // swap replaces a part by its new version. It preserves the focus, open details
  // and scroll positions.
  function swap(old, fresh) {
    const focused = old.contains(document.activeElement) ? counterpart(old, document.activeElement) : null;
    const open = new Set([...old.querySelectorAll('details[open][id]')].map((d) => d.id));
    const scrolled = [old, ...old.querySelectorAll('*')].filter((e) => e.scrollLeft || e.scrollTop)
      .map((e) => ({ find: counterpart(old, e), left: e.scrollLeft, top: e.scrollTop }));
    const part = document.importNode(fresh, true);
    for (const details of part.querySelectorAll('details[id]')) if (open.has(details.id)) details.open = true;
    updateTimes(part);
    part.classList.add('fresh');
    old.replaceWith(part);
    for (const { find, left, top } of scrolled) {
      const element = find(part);
      if (element) [element.scrollLeft, element.scrollTop] = [left, top];
    }
    if (!focused) return;
    focused(part)?.focus({ preventScroll: true });
    if (part.contains(document.activeElement)) return;
    part.tabIndex = -1;
    part.focus({ preventScroll: true });
  }

  // Refreshes are at least minPause apart, and five times as long as the last one
  // took, so that slow pages do not overload the server. A random delay spreads
  // the requests of many readers.
  const minPause = 1000, maxPause = 60000;
  let requestedAt = 0, pause = minPause, timer = 0, fetching = false, again = false;

  async function refresh() {
    timer = 0;
    fetching = true;
    requestedAt = Date.now();
    let retryAfter = 0; // milliseconds
    try {
      const response = await fetch(location.href, { headers: { Accept: 'text/html', 'X-Ledger-Refresh': '1' }, cache: 'no-store' });
      if (response.redirected && new URL(response.url).pathname === main.dataset.login) return location.assign(response.url);
      if (response.status >= 500) retryAfter = 1000 * (parseInt(response.headers.get('Retry-After'), 10) || 5);
      if (response.ok) show(new DOMParser().parseFromString(await response.text(), 'text/html'));
    } catch {
      // the server is unreachable: the stream refreshes the page once it reconnects
    } finally {
      fetching = false;
      pause = Math.min(maxPause, Math.max(minPause, 5 * (Date.now() - requestedAt), retryAfter));
      if (again || retryAfter) scheduleRefresh();
      again = false;
    }
  }

  function show(fresh) {
    const freshParts = new Map([...parts(fresh)].map((part) => [part.dataset.livePart, part]));
    for (const part of parts(document)) {
      const id = part.dataset.livePart, next = freshParts.get(id);
      if (!next || next.outerHTML === source.get(id)) continue;
      source.set(id, next.outerHTML);
      swap(part, next);
    }
  }

  // scheduleRefresh refreshes the page after the pause, unless that is scheduled.
  function scheduleRefresh() {
    if (fetching) again = true;
    else if (!timer) timer = setTimeout(refresh, Math.max(120, requestedAt + pause - Date.now()) + Math.random() * pause / 2);
  }

  // concerns reports whether the event can change this page.
  function concerns(event) {
    const commit = main.dataset.liveCommit;
    if (!commit || event.type === 'policy') return true;
    try {
      const body = JSON.parse(event.data);
      return body.commit === commit || body.other?.commit === commit;
    } catch {
      return true;
    }
  }

  let stream = null, retries = 0;
  // The first stream starts at the last event that the page shows, so that the page
  // need not be fetched again. If the page is older than a minute, it is fetched
  // again instead: the stream would replay every event since then.
  let since = main.dataset.liveSince;
  const setStatus = (text) => { if (status && status.textContent !== text) status.textContent = text; };

  function connect() {
    if (stream || document.hidden) return;
    let complete = Boolean(since) && performance.now() < 60000;
    const url = new URL(main.dataset.live, location.href);
    if (complete) url.searchParams.set('last_event_id', since);
    since = '';
    stream = new EventSource(url);
    stream.onopen = () => {
      retries = 0;
      setStatus('live');
      if (!complete) scheduleRefresh();
      complete = false;
    };
    stream.onerror = () => {
      setStatus('reconnecting…');
      if (stream.readyState !== EventSource.CLOSED) return;
      disconnect();
      setTimeout(() => { scheduleRefresh(); connect(); }, Math.min(60000, 3000 * 2 ** retries++));
    };
    for (const type of url.searchParams.get('types').split(',')) {
      stream.addEventListener(type, (event) => { if (concerns(event)) scheduleRefresh(); });
    }
    // The ledger was restored from a backup that lacks events which the page may show.
    stream.addEventListener('ledger_restored', () => scheduleRefresh());
  }

  function disconnect() {
    stream?.close();
    stream = null;
  }

  if (main.dataset.live) {
    // Browsers limit the connections to a server, so hidden pages disconnect.
    document.addEventListener('visibilitychange', () => { if (document.hidden) disconnect(); else connect(); });
    addEventListener('pagehide', disconnect);
    addEventListener('pageshow', connect);
    connect();
  }

  // Drop the "saved" notice from the URL, so that a reload does not repeat it.
  const here = new URL(location.href);
  if (here.searchParams.has('saved')) {
    here.searchParams.delete('saved');
    history.replaceState(history.state, '', here);
  }

  updateTimes(document);
  setInterval(() => updateTimes(document), 20000);
})();
