// The pages work without this: it adds keys, copying, and what arrives while one reads.
'use strict';
(() => {
  const $ = (q, from) => (from || document).querySelector(q);
  const all = (q) => [...document.querySelectorAll(q)];
  const main = () => $('#main');
  const open = () => main() && main().dataset.session;

  // Keys.
  const stops = { item: '.item', message: '#log > article, #log > .call, #log > .calls, #log > .cut', prompt: '#log article.user' };
  function go(kind, step) {
    const list = all(stops[kind]);
    if (!list.length) return false;
    let at = list.findIndex((e) => e.classList.contains('here'));
    if (at < 0) {
      const top = 80;
      at = list.findIndex((e) => e.getBoundingClientRect().top > top - 4);
      at = at < 0 ? list.length - 1 : step > 0 ? at - 1 : at;
      const first = list[Math.max(0, at)];
      if (step > 0 && first && Math.abs(first.getBoundingClientRect().top - top) < 8) at = list.indexOf(first);
    }
    const next = list[Math.min(list.length - 1, Math.max(0, at + step))];
    all('.here').forEach((e) => e.classList.remove('here'));
    next.classList.add('here');
    next.scrollIntoView({ block: kind === 'item' ? 'nearest' : 'start' });
    const link = $('a', next);
    if (kind === 'item' && link) link.focus({ preventScroll: true });
    return true;
  }
  const follow = (q) => { const a = $(q); if (a) location.href = a.href; return !!a; };
  const keys = {
    '/': () => { const q = $('#q'); if (q) { q.focus(); q.select(); } return !!q; },
    j: () => go(open() ? 'message' : 'item', 1),
    k: () => go(open() ? 'message' : 'item', -1),
    J: () => go('prompt', 1),
    K: () => go('prompt', -1),
    '[': () => follow('a[rel=prev]'),
    ']': () => follow('a[rel=next]') || follow('.more a'),
    m: () => follow('.views a:not([aria-current])'),
    c: () => { const a = $('.here .clock a'); return !!a && copy(a.href); },
    '?': () => { help(); return true; },
  };
  const help = () => { const d = $('#help'); if (!d.open) d.showModal(); };
  document.addEventListener('keydown', (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName);
    if (typing) { if (e.key === 'Escape') e.target.blur(); return; }
    if ($('#help').open) return;
    const act = keys[e.key];
    if (act && act()) e.preventDefault();
  });

  // Copying.
  function copy(text) {
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(() => say('Copied: ' + text), () => {});
    return true;
  }
  function say(text) {
    let p = $('#spoken');
    if (!p) { p = document.createElement('p'); p.id = 'spoken'; p.className = 'unseen'; p.setAttribute('role', 'status'); document.body.append(p); }
    p.textContent = text;
  }
  document.addEventListener('click', (e) => {
    const b = e.target.closest('[data-copy]');
    if (b) copy(b.dataset.copy);
    if (e.target.id === 'help-button') help();
  });

  // A message that an address names may be folded away.
  function unfold() {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    let folded = false;
    for (let e = target.parentElement; e; e = e.parentElement) if (e.tagName === 'DETAILS' && !e.open) { e.open = true; folded = true; }
    if (folded) target.scrollIntoView();
    all('.here').forEach((e) => e.classList.remove('here'));
    target.classList.add('here');
  }
  addEventListener('hashchange', unfold);

  // The prompt that is read now, in the rail.
  function railed() {
    const links = new Map(all('.rail a').map((a) => [new URL(a.href).hash.slice(1), a]));
    const prompts = all('#log article.user[id]');
    if (!links.size || !prompts.length) return;
    let current = null;
    for (const p of prompts) { if (p.getBoundingClientRect().top > 140) break; current = p; }
    all('.rail a[aria-current]').forEach((a) => a.removeAttribute('aria-current'));
    const a = links.get((current || prompts[0]).id);
    if (a) {
      a.setAttribute('aria-current', 'true');
      const rail = $('.rail'), y = a.offsetTop;
      if (y < rail.scrollTop || y > rail.scrollTop + rail.clientHeight - 40) rail.scrollTop = y - rail.clientHeight / 3;
    }
  }
  let waiting = false;
  addEventListener('scroll', () => { if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; railed(); }); } }, { passive: true });

  // What arrives: one tab of the browser that is looked at listens, and tells the others.
  const channel = 'BroadcastChannel' in window ? new BroadcastChannel('sessiond') : null;
  const fresh = new Set();
  let asking = false, again = false;
  async function append() {
    const log = $('#log');
    if (!log || log.dataset.whole !== 'true') return;
    if (asking) { again = true; return; }
    asking = true;
    try {
      const u = new URL(location.href);
      u.hash = '';
      u.searchParams.delete('at');
      u.searchParams.delete('said');
      u.searchParams.set('from', log.dataset.next);
      const res = await fetch(u, { headers: { 'HX-Request': 'true' } });
      if (res.ok) {
        const got = new DOMParser().parseFromString(await res.text(), 'text/html').getElementById('log');
        if (got) {
          log.dataset.next = got.dataset.next;
          log.append(...got.childNodes);
        }
      }
    } catch (e) { /* the daemon stopped; the next event asks again */ }
    asking = false;
    if (again) { again = false; append(); }
  }
  function happened(e) {
    const row = $('[data-session="' + CSS.escape(e.session || '') + '"].item');
    if (open() && e.session === open()) append();
    if (row) {
      const dot = $('.live', row);
      dot.hidden = false;
      clearTimeout(dot.timer);
      dot.timer = setTimeout(() => { dot.hidden = true; }, 15000);
    } else if ($('#fresh') && !open() && /^session.created|^messages/.test(e.type)) {
      fresh.add(e.session);
      const a = document.createElement('a');
      a.href = location.href;
      a.textContent = 'show';
      $('#fresh').replaceChildren(fresh.size + (fresh.size === 1 ? ' other conversation' : ' other conversations') + ' went on: ', a);
    }
  }
  if (channel) channel.onmessage = (m) => happened(m.data);
  let source = null, release = null;
  function listen() {
    const types = ['session.created', 'session.changed', 'messages.appended', 'compaction.done', 'head.moved'];
    source = new EventSource('/live');
    const tell = (m) => {
      const data = JSON.parse(m.data), e = { type: m.type, session: data.session_id };
      happened(e);
      if (channel) channel.postMessage(e);
    };
    types.forEach((t) => source.addEventListener(t, tell));
  }
  function lead() {
    if (document.hidden || source || !$('nav.top')) return;
    if (!navigator.locks) { listen(); return; }
    navigator.locks.request('sessiond-live', () => new Promise((done) => {
      if (document.hidden) { done(); return; }
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

  function ready() {
    all('button[hidden]').forEach((b) => { b.hidden = false; });
    unfold();
    railed();
    lead();
  }
  if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', ready); else ready();
})();
