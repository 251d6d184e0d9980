// The pages work without this: it adds keys, copying, and what arrives while one reads.
'use strict';
(() => {
  const $ = (q, from) => (from || document).querySelector(q);
  const all = (q, from) => [...(from || document).querySelectorAll(q)];
  const shown = () => { const main = $('#main'); return main && main.dataset.session; }; // the session of a conversation
  const named = (hash) => { try { return hash.length > 1 ? document.getElementById(decodeURIComponent(hash.slice(1))) : null; } catch (e) { return null; } };

  // Moving.
  const stops = { item: '.item', message: '#log > :is(article, .call, .calls, .cut, .given, .agent)', prompt: '#log > article.user[id]' };
  const inSight = (e) => { const r = e.getBoundingClientRect(); return r.bottom > top() && r.top < innerHeight; };
  const top = () => parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop) || 0; // where the page begins below what sticks
  function mark(e) {
    all('.here').forEach((o) => o.classList.remove('here'));
    e.classList.add('here');
    const focus = e.matches('.item') ? $('a', e) : e.matches('.call, .calls, .given, .agent') ? $('summary', e) : e;
    if (!focus) return;
    if (focus === e) e.tabIndex = -1;
    focus.focus({ preventScroll: true });
  }
  function go(kind, step) {
    const list = all(stops[kind]);
    let at = list.findIndex((e) => e.classList.contains('here') && inSight(e));
    if (at < 0) { // what is at the top of the window is the one to go on from
      const from = (r) => (kind === 'item' ? r.bottom - 10 : r.top - 4);
      at = list.findIndex((e) => from(e.getBoundingClientRect()) > top());
      at = (at < 0 ? list.length : at) - (step > 0 ? 1 : 0);
    }
    const next = list[at + step];
    if (!next) return kind === 'message' && follow(step > 0 ? 'a[rel=next]' : 'a[rel=prev]');
    mark(next);
    next.scrollIntoView({ block: kind === 'item' ? 'nearest' : 'start' });
    jump(next);
    return true;
  }
  function prompt(step) { // the rail also has the prompts of the other parts
    railed();
    const links = all('.rail a'), at = links.findIndex((a) => a.hasAttribute('aria-current'));
    const here = $('.here'), before = here && at >= 0 && named(links[at].hash);
    if (step < 0 && before && before !== here && before.compareDocumentPosition(here) & Node.DOCUMENT_POSITION_FOLLOWING) step = 0;
    const next = links[at + step];
    if (next) next.click();
    return !!next;
  }
  const follow = (q) => { const a = $(q); if (a) location.href = a.href; return !!a; };

  // The list from which a session was opened, for the keys [ and ].
  function keepList() {
    const list = all('.item').map((e) => $('a', e)).filter(Boolean).map((a) => a.pathname);
    if (!shown() && list.length) try { sessionStorage.setItem('list', JSON.stringify(list)); } catch (e) { /* no store, no list */ }
  }
  function neighbour(step) {
    if (!shown()) return go('item', step);
    let list = [];
    try { list = JSON.parse(sessionStorage.getItem('list')) || []; } catch (e) { /* the same */ }
    const at = list.indexOf(location.pathname), to = list[at + step];
    if (at >= 0 && to) location.href = to;
    else say(at < 0 ? 'This session was not opened from a list.' : 'The list ends here.');
    return true;
  }

  const keys = {
    '/': () => { const q = $('#q'); if (q) { q.focus(); q.select(); } return !!q; },
    j: () => go(shown() ? 'message' : 'item', 1),
    k: () => go(shown() ? 'message' : 'item', -1),
    J: () => prompt(1),
    K: () => prompt(-1),
    '[': () => neighbour(-1),
    ']': () => neighbour(1),
    p: () => follow('a[rel=prev]'),
    n: () => follow('a[rel=next]') || !shown() && follow('.more a'),
    m: () => { const a = $('.views a:not([aria-current])'); if (a) location.href = atPlace(a); return !!a; },
    x: () => {
      const box = $('.item.here .mark');
      if (box) box.click();
      return shown() ? begin() : !!box;
    },
    f: () => { const q = $('#find'); if (q) { q.focus(); q.select(); } return !!q; },
    '<': () => follow('[data-beside=older]'),
    '>': () => follow('[data-beside=newer]'),
    c: () => { if (shown()) copy(link()); return !!shown(); },
    '?': () => { help(); return true; },
  };
  const help = () => { const d = $('#help'); if (!d.open) d.showModal(); };
  document.addEventListener('keydown', (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing) return;
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName)) {
      if (e.key === 'Escape') { e.preventDefault(); e.target.blur(); } // and keeps what was found
      if (e.key === 'ArrowDown' && e.target.id === 'q' && go('item', 1)) e.preventDefault();
      return;
    }
    if ($('#help').open) return;
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[e.key], day = e.target.closest('.heat a');
    if (day && step) { // from day to day of the year
      const days = all('.heat a'), next = days[days.indexOf(day) + step];
      if (next) next.focus();
      e.preventDefault();
      return;
    }
    const act = keys[e.key];
    if (act && act()) e.preventDefault();
  });

  // The other view of a conversation opens at the message that is read.
  function atPlace(a) {
    const here = $('.here'), named = /^(?:m(\d+)|\d{8}_\d+\.\d+)$/;
    if (scrollY < 40 && !here && !$('a[rel=prev]')) return a.href; // nothing was read yet
    const list = all('#log [id]').filter((e) => named.test(e.id) && !e.closest('.agent') && e.getClientRects().length);
    const e = list.includes(here) && inSight(here) ? here : list.find((e) => e.getBoundingClientRect().bottom > top() + 20) || list.at(-1);
    if (!e) return a.href;
    const u = new URL(a.href);
    u.searchParams.set('at', e.id.match(named)[1] || e.id);
    u.hash = e.id;
    return u.href;
  }

  // Copying.
  let first = null; // of a range, its name
  const nameOf = (e) => { const m = e && (e.id || '').match(/^(?:m(\d+)|\d{8}_\d+\.\d+)$/); return m ? m[1] || e.id : ''; };
  function begin() {
    const name = nameOf($('.here'));
    if (!name) { say('Go to a message first: j and k.'); return true; }
    first = name;
    say('The range begins at ' + name + '. Go to its last message: c copies the link.');
    return true;
  }
  function link() {
    const last = nameOf($('.here'));
    if (first && last && first !== last) {
      const u = new URL(location.pathname, location.href), ends = /\./.test(first + last) ? [first, last] : [first, last].sort((a, b) => a - b);
      u.searchParams.set('at', ends[0]);
      u.searchParams.set('through', ends[1]);
      u.hash = 'm' + ends[0];
      first = null;
      return u.href;
    }
    const a = $('.here .clock a') || $('.here[id]');
    return a ? a.href || location.href.replace(/#.*/, '') + '#' + a.id : location.href;
  }
  function copy(text) {
    const failed = () => say('Copy this: ' + text);
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(() => say('Copied: ' + text), failed); else failed();
  }
  let saying = 0;
  function say(text, address, lasts) {
    const p = $('#toast');
    p.replaceChildren(text);
    if (address) {
      const a = document.createElement('a');
      a.href = address;
      a.textContent = 'show';
      p.append(' · ', a);
    }
    clearTimeout(saying);
    if (!lasts) saying = setTimeout(() => p.replaceChildren(), 6000);
  }
  document.addEventListener('click', (e) => {
    const b = e.target.closest('[data-copy]'), a = e.target.closest('a');
    if (b) copy(b.dataset.copy === 'link' ? link() : b.dataset.copy);
    if (e.target.id === 'help-button') help();
    if (a && a.matches('.views a:not([aria-current])')) a.href = atPlace(a);
    if (a && a.closest('.rail') && !e.ctrlKey && !e.metaKey && !e.shiftKey && named(a.hash)) { // it is on this page
      e.preventDefault();
      const rail = $('.rail');
      if (rail.matches(':popover-open')) rail.hidePopover();
      history.pushState(null, '', a.href);
      arrive(named(a.hash));
    }
  });

  // A message that an address names may be folded away.
  function unfold() {
    const target = named(location.hash);
    if (!target) return;
    let folded = false;
    for (let e = target.parentElement; e; e = e.parentElement) if (e.tagName === 'DETAILS' && !e.open) { e.open = true; folded = true; }
    if (folded) target.scrollIntoView();
    mark(target);
    jump(target);
  }
  function arrive(target) { if (target) { target.scrollIntoView(); unfold(); } }
  addEventListener('hashchange', unfold);
  addEventListener('popstate', () => arrive(named(location.hash)));

  // The prompt that is read now, in the rail: that of the message to which a key or a link led, until one scrolls; then
  // the first one in the upper third of the window, or the last one above.
  let goal = null, goalAt = 0;
  function jump(e) { goal = e; goalAt = scrollY; railed(); }
  function railed() {
    const links = new Map(all('.rail a').map((a) => [a.hash.slice(1), a]));
    const prompts = all('#log article.user[id]').filter((p) => links.has(p.id));
    if (!prompts.length) return;
    if (goal && (!goal.isConnected || Math.abs(scrollY - goalAt) > 4)) goal = null;
    const before = (e) => prompts.filter((p) => p === e || p.compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING).at(-1);
    const y = (p) => p.getBoundingClientRect().top, third = top() + (innerHeight - top()) / 3;
    const current = goal ? before(goal) : prompts.find((p) => y(p) > top() - 8 && y(p) < third) || prompts.filter((p) => y(p) < top()).at(-1);
    let a = links.get((current || prompts[0]).id);
    const above = prompts[0].previousElementSibling;
    if (!current && above && !above.matches('.edge') && a.parentElement.previousElementSibling) a = $('a', a.parentElement.previousElementSibling);
    if (a.hasAttribute('aria-current')) return;
    all('.rail a[aria-current]').forEach((o) => o.removeAttribute('aria-current'));
    a.setAttribute('aria-current', 'true');
    const rail = $('.rail'), line = a.offsetTop;
    if (line < rail.scrollTop || line > rail.scrollTop + rail.clientHeight - 40) rail.scrollTop = line - rail.clientHeight / 3;
  }
  let waiting = false;
  addEventListener('scroll', () => { if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; railed(); }); } }, { passive: true });

  // What marked sessions are for, as soon as one is marked.
  document.addEventListener('change', (e) => {
    const form = $('#several');
    if (!form || !e.target.matches('.mark')) return;
    const n = all('.mark:checked').length, fold = $('details', form);
    if (n && !form.classList.contains('some')) fold.open = true;
    form.classList.toggle('some', n > 0);
    $('summary', fold).textContent = 'Change or export the ' + (n ? n + ' marked' : 'marked ones');
  });

  // What arrives. The pieces behind the edge, like calls that wait for results, are replaced.
  let asking = false, again = false;
  async function append() {
    const log = $('#log[data-live]');
    if (!log) return;
    if (asking) { again = true; return; }
    asking = true;
    try {
      const u = new URL(location.href);
      u.hash = '';
      u.search = '';
      u.searchParams.set('from', log.dataset.next);
      const res = await fetch(u, { headers: { 'HX-Request': 'true' } });
      const got = res.ok && new DOMParser().parseFromString(await res.text(), 'text/html');
      if (got && got.getElementById('log')) put(log, got);
      if (res.status === 401) say('You are logged out.', location.href, true);
    } catch (e) { /* the daemon stopped; the next event asks again */ }
    asking = false;
    if (again) { again = false; append(); }
  }
  // A sub-agent's conversation opens in place, and goes on there while it works.
  async function openAgent(d) {
    try {
      const res = await fetch('/s/' + d.dataset.agent + '?in=' + shown(), { headers: { 'HX-Request': 'true' } });
      const page = res.ok && new DOMParser().parseFromString(await res.text(), 'text/html');
      const log = page && page.getElementById('log'), later = page && $('a[rel=next]', page), inner = document.createElement('div');
      if (!log) throw new Error(res.status);
      inner.className = 'inner';
      const before = $('.inner', d), open = before ? folds([...before.childNodes]).filter(([, f]) => f.open).map(([name]) => name) : [];
      inner.append(...log.childNodes);
      if (!$(':scope > :not(.edge)', inner)) inner.append('It has no messages yet.');
      if (later) inner.append(Object.assign(document.createElement('a'), { href: later.href, textContent: 'Later messages' }));
      for (const [name, f] of folds([...inner.childNodes])) f.open = f.open || open.includes(name);
      if (before) before.replaceWith(inner); else d.append(inner);
    } catch (e) { say('The conversation cannot be read now.', '/s/' + d.dataset.agent); }
  }
  document.addEventListener('toggle', (e) => { if (e.target.matches('.agent') && e.target.open && !$('.inner', e.target)) openAgent(e.target); }, true);

  // Who acts now, until that is no longer known.
  let actors = 0;
  function watchActors() {
    clearTimeout(actors);
    const now = Date.now(), ends = (e) => Math.max(Date.parse(e.dataset.until) + 500, (e.asked || 0) + 30000); // clocks may differ
    all('.doing').filter((e) => ends(e) <= now).forEach(refreshActor);
    const next = Math.min(...all('.doing').map(ends));
    if (next < Infinity) actors = setTimeout(watchActors, Math.min(next - now, 2 ** 31 - 1));
  }
  function refreshActor(e) {
    const row = e.closest('.item'), id = row ? row.dataset.session : shown();
    e.remove();
    actor(id, row ? $('.title', row) : $('#doing'));
  }
  async function actor(id, to) {
    try {
      const res = await fetch('/s/' + id + '/now', { headers: { 'HX-Request': 'true' } });
      if (!res.ok || !to) return;
      const got = $('.doing', new DOMParser().parseFromString(await res.text(), 'text/html')), old = $('.doing', to);
      if (old) old.remove();
      if (got) { got.asked = Date.now(); to.append(got); }
      watchActors();
    } catch (e) { /* the daemon stopped; the next event asks again */ }
  }

  // folds names the folds of pieces by their places, so that they stay open where pieces are replaced.
  const folds = (pieces) => pieces.filter((p) => p.nodeType === 1).flatMap((p, i) =>
    [...(p.tagName === 'DETAILS' ? [[i + ' itself', p]] : []), ...all('details', p).filter((d) => d === p || !d.closest('.inner') || p.closest('.inner')).map((d, n) => [i + ' ' + n, d])]);
  function put(log, page) {
    $('#doing').replaceChildren(...page.getElementById('doing').childNodes);
    watchActors();
    const got = page.getElementById('log'), later = $('a[rel=next]', page), fresh = [...got.childNodes], old = [];
    if (!later && got.dataset.head === log.dataset.head) return; // nothing arrived
    for (let e = $('.edge', log); e; e = e.nextSibling) old.push(e);
    const opened = new Set(folds(old).filter(([, d]) => d.open).map(([name]) => name)), here = $('.here', log), focus = document.activeElement;
    const below = log.getBoundingClientRect().bottom > innerHeight, grown = fresh.length > old.length;
    for (const [name, d] of folds(fresh)) if (opened.has(name)) for (let e = d; e; e = e.parentElement) if (e.tagName === 'DETAILS') e.open = true;
    old.forEach((e) => e.remove());
    log.append(...fresh);
    log.dataset.next = got.dataset.next;
    log.dataset.head = got.dataset.head;
    for (const id of ['about', 'rail']) $('#' + id).replaceChildren(...page.getElementById(id).childNodes);
    if ($('#none')) $('#none').remove();
    if (later) { // more arrived than one piece shows
      delete log.dataset.live;
      log.after(later.parentElement);
    }
    if (here && !here.isConnected && here.id && document.getElementById(here.id)) document.getElementById(here.id).classList.add('here');
    if (focus && !focus.isConnected && $('.here')) mark($('.here'));
    if (below && grown && log.lastElementChild && log.lastElementChild.getBoundingClientRect().top > innerHeight) {
      const last = $('[id]', log.lastElementChild) || log.lastElementChild;
      if (last.id) say('New messages below', '#' + last.id);
    }
    railed();
  }
  const fresh = new Set();
  function happened(e) {
    if (e.type === 'opened') append();
    if (e.type === 'messages.appended') all('.agent[open]').filter((d) => d.dataset.agent === e.session).forEach(openAgent);
    const row = $('[data-session="' + CSS.escape(e.session || '') + '"].item');
    if (shown() && e.session === shown()) {
      if (e.type === 'session.purged') say('This session was purged. What you see is no longer stored.', '', true);
      else if (e.type === 'messages.appended' && $('#log[data-live]')) append();
      else if (e.type === 'messages.appended' && $('.bar')) say('There are new messages.', location.href, true);
      else if (/^compaction|^head/.test(e.type)) say('The conversation changed: ' + e.type.replace('.', ' ') + '.', location.href, true);
    }
    if (row) {
      let dot = $('.live', row);
      if (!dot) {
        dot = document.createElement('span');
        dot.className = 'live';
        dot.title = 'messages arrive now';
        $('.title', row).append(dot);
      }
      dot.hidden = false;
      clearTimeout(row.timer);
      row.timer = setTimeout(() => actor(e.session, $('.title', row)), 300);
      clearTimeout(dot.timer);
      dot.timer = setTimeout(() => { dot.hidden = true; }, 15000);
    } else if ($('#fresh') && !shown() && /^session.created|^messages/.test(e.type)) {
      fresh.add(e.session);
      const a = document.createElement('a');
      a.href = location.href;
      a.textContent = 'show';
      $('#fresh').replaceChildren(fresh.size + (fresh.size === 1 ? ' other session has' : ' other sessions have') + ' new messages: ', a);
    }
  }

  // One tab of the browser that is looked at listens, and tells the others.
  const channel = 'BroadcastChannel' in window ? new BroadcastChannel('sessiond') : null;
  if (channel) channel.onmessage = (m) => happened(m.data);
  let source = null, release = null;
  function listen() {
    const types = ['session.created', 'session.purged', 'messages.appended', 'compaction.done', 'compaction.undone', 'compaction.redone', 'head.moved'];
    source = new EventSource('/live');
    const tell = (m) => {
      const data = JSON.parse(m.data), e = { type: m.type, session: data.session_id };
      happened(e);
      if (channel) channel.postMessage(e);
    };
    types.forEach((t) => source.addEventListener(t, tell));
    source.onerror = () => { if (source && source.readyState === EventSource.CLOSED) say('New messages no longer arrive here: the daemon was restarted, or you are logged out.', location.href, true); };
    source.onopen = () => { append(); if (channel) channel.postMessage({ type: 'opened' }); }; // nobody told of what came before
  }
  function lead() {
    if (document.hidden || source || !$('nav.top')) return;
    append();
    if (!navigator.locks) { listen(); return; }
    navigator.locks.request('sessiond-live', () => new Promise((done) => {
      if (document.hidden || source) { done(); return; }
      release = done;
      listen();
    }));
  }
  function rest() {
    if (source) { source.close(); source = null; }
    if (release) { release(); release = null; }
  }
  document.addEventListener('visibilitychange', () => { if (document.hidden) rest(); else lead(); });
  addEventListener('pagehide', rest);
  addEventListener('pageshow', (e) => { if (e.persisted) lead(); });

  document.addEventListener('htmx:afterSwap', () => {
    keepList();
    watchActors();
    const n = all('.hits .item').length;
    $('#spoken').textContent = $('.hits') ? n + (n === 1 ? ' conversation' : ' conversations') : '';
  });
  function ready() {
    document.documentElement.classList.add('js');
    keepList();
    unfold();
    railed();
    watchActors();
    lead();
  }
  if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', ready); else ready();
})();
