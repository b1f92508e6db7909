"use strict";
(() => {
  // Names and findings come from the data: they are only ever set as text.
  const element = (tag, className, text) => {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const parsed = (id) => {
    const holder = document.getElementById(id);
    return holder ? JSON.parse(holder.textContent) : null;
  };
  document.querySelectorAll("[data-needs-script]").forEach((e) => { e.hidden = false; });

  // Cards: laid out when they are asked for.
  const data = parsed("page-data");
  const cardOf = (row) => (row.nextElementSibling?.classList.contains("card-row")
    ? row.nextElementSibling : null);
  const makeCard = (at) => {
    const card = data.cards[at];
    const made = document.getElementById("card").content.firstElementChild.cloneNode(true);
    const text = (number) => data.texts[number];
    const slot = (name) => made.querySelector(`[data-slot=${name}]`);
    const bar = (share, tone) => {
      const track = element("div", "bar"), fill = element("i", tone);
      fill.style.width = share + "%";
      track.append(fill);
      return track;
    };
    slot("evidence").textContent = text(card.evidence);
    slot("question").textContent = text(card.question);
    slot("labels").append(...card.labels.flatMap(([label, theirs, share, ours, ownShare]) => {
      const name = element("span", "name");
      name.append(element("bdi", "", text(label)));
      return [name, bar(share), element("span", "theirs", text(theirs)),
        bar(ownShare, "own-fill"), element("span", "ours", text(ours) + " yours")];
    }));
    slot("more").textContent = card.more === 1 ? "and 1 more label" : "and " + card.more + " more labels";
    slot("more").hidden = card.more === 0;
    slot("shifts").append(...card.shifts.map(([feature, difference, spread]) => {
      const line = element("tr"), head = element("th");
      head.scope = "row";
      head.append(element("bdi", "", text(feature)));
      line.append(head, element("td", "", text(difference)), element("td", "", text(spread)));
      return line;
    }));
    const pictures = card.pictures || [];
    slot("pictures").append(...pictures.map(([uri, name, label]) => {
      const figure = element("figure"), image = element("img");
      if (uri.startsWith("data:image/")) image.src = uri;
      image.alt = text(name);
      image.width = image.height = 72;
      figure.append(image, element("figcaption", "", text(label)));
      return figure;
    }));
    const part = (name, shown) => { made.querySelector(`[data-part=${name}]`).hidden = !shown; };
    part("shifts", card.shifts.length > 0);
    part("alike", card.shifts.length === 0 && pictures.length === 0);
    part("pictures", pictures.length > 0);
    return made;
  };
  const toggle = (row, open) => {
    const before = cardOf(row);
    if (before && !open) before.remove();
    if (!before && open) {
      const card = makeCard(row.dataset.at);
      card.classList.add(row.classList[1]);
      row.after(card);
    }
    row.querySelector("button.more").setAttribute("aria-expanded", String(open));
  };
  const withCards = [];
  if (data) {
    document.querySelectorAll("tr.source").forEach((row) => {
      if (!data.cards[row.dataset.at]) return;
      const head = row.cells[0], button = element("button", "more");
      button.type = "button";
      button.setAttribute("aria-expanded", "false");
      button.append(...head.childNodes);
      head.append(button);
      row.addEventListener("click", (event) => {
        if (String(getSelection())) return;
        if (event.target.closest("a, input")) return;
        toggle(row, !cardOf(row));
      });
      withCards.push(row);
    });
    // The first is open, so that one sees that there is more.
    if (withCards.length) toggle(withCards[0], true);
    addEventListener("beforeprint", () => withCards.forEach((row) => toggle(row, true)));
  }

  // Sorting: the button of a column sorts by the values its cells carry.
  document.querySelectorAll("table.sources").forEach((table) => {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      head.querySelector("button").addEventListener("click", () => {
        const kind = head.dataset.kind;
        const text = kind !== "number";
        const before = head.getAttribute("aria-sort");
        const first = text ? "ascending" : "descending";
        const other = text ? "descending" : "ascending";
        const order = before === first ? other : first;
        const sign = order === "ascending" ? 1 : -1;
        const key = (row) => (text ? row.cells[column].textContent : row.cells[column].dataset.value);
        const rows = [...body.querySelectorAll("tr.source")];
        const cards = new Map(rows.map((row) => [row, cardOf(row)]));
        rows.sort((a, b) => sign * (text ? key(a).localeCompare(key(b)) : key(a) - key(b)));
        rows.forEach((row) => body.append(row, ...(cards.get(row) ? [cards.get(row)] : [])));
        heads.forEach((h) => h.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", order);
      });
    });
  });

  // Search and filter.
  const search = document.getElementById("search");
  if (search) {
    const all = document.getElementById("all-sources");
    const groups = [...all.querySelectorAll(".group")];
    const filters = [...all.querySelectorAll("[data-filter]")];
    const found = document.getElementById("found");
    const lines = groups.map((group) => [...group.querySelectorAll("tr.source")]
      .map((row) => [row, (row.cells[0].textContent + " " + row.cells[1].textContent).toLowerCase()]));
    let wanted = "", asked = false;
    const apply = () => {
      const query = search.value.trim().toLowerCase();
      let shown = 0;
      groups.forEach((group, k) => {
        const chosen = !wanted || group.dataset.group === wanted;
        let here = 0;
        lines[k].forEach(([row, text]) => {
          const fits = chosen && text.includes(query);
          row.hidden = !fits;
          const card = cardOf(row);
          if (card) card.hidden = !fits;
          here += fits;
        });
        group.hidden = here === 0;
        if (group.tagName === "DETAILS" && (query || wanted || asked)) {
          group.open = here > 0 && Boolean(query || wanted);
        }
        shown += here;
      });
      asked = Boolean(query || wanted);
      all.classList.toggle("searching", Boolean(query));
      found.textContent = !query ? "" : shown === 0 ? "No source fits."
        : shown === 1 ? "1 source fits." : shown + " sources fit.";
      filters.forEach((f) => f.setAttribute("aria-pressed", String(f.dataset.filter === wanted)));
    };
    search.addEventListener("input", apply);
    filters.forEach((f) => f.addEventListener("click", () => { wanted = f.dataset.filter; apply(); }));
  }

  // The trust path: weights at any lambda, by the optimality conditions (paper, eq. 6).
  const path = parsed("path-data");
  if (!path) return;
  const total = path.m.reduce((a, b) => a + b, 0);
  const order = path.d.map((_, i) => i).sort((i, j) => path.d[i] - path.d[j]);

  const solve = (lambda) => {
    if (lambda === Infinity) return { mu: Infinity, weights: path.m.map((m) => m / total) };
    // With k the last source inside, mu = d_k + t and M t^2 + 2 S t + B = lambda^2.
    let M = 0, S = 0, B = 0, last = path.d[order[0]];
    for (const i of order) {
      const gap = path.d[i] - last;
      const nextS = S + gap * M;
      const nextB = B + gap * (S + nextS);
      if (M > 0 && gap > 0 && nextB >= lambda * lambda) break;
      S = nextS; B = nextB; last = path.d[i]; M += path.m[i];
    }
    const rest = Math.max(lambda * lambda - B, 0);
    const t = rest > 0 ? rest / (S + Math.sqrt(S * S + M * rest)) : 0;
    const mu = last + t;
    let weights = path.d.map((d, i) => path.m[i] * Math.max(mu - d, 0));
    let sum = weights.reduce((a, b) => a + b, 0);
    if (!(sum > 0)) {
      const low = path.d[order[0]];
      weights = path.d.map((d, i) => (d === low ? path.m[i] : 0));
      sum = weights.reduce((a, b) => a + b, 0);
    }
    return { mu, weights: weights.map((w) => w / sum) };
  };

  const slider = document.getElementById("lambda");
  const words = document.getElementById("mu-words");
  const list = document.getElementById("weights-now");
  const marker = document.getElementById("now");
  const reset = document.getElementById("reset");
  const steps = Number(slider.max);
  const span = Math.log(path.high / path.low);
  const toLambda = (s) => (s <= 0 ? 0 : s >= steps ? Infinity
    : path.low * Math.exp(((s - 1) / (steps - 2)) * span));
  const toStep = (lambda) => (lambda === null ? steps : lambda <= 0 ? 0
    : Math.min(Math.max(1 + (Math.log(lambda / path.low) / span) * (steps - 2), 1), steps - 1));
  const percent = (x) => (100 * x).toFixed(1) + " %";
  const round = (x) => (x === 0 ? "0" : Number(x.toPrecision(3)).toString());

  const show = (lambda) => {
    const { mu, weights } = solve(lambda);
    const used = weights.filter((w) => w > 1e-9).length;
    const effective = 1 / weights.reduce((a, w, i) => a + (w * w) / path.m[i], 0);
    const own = path.groups.indexOf("own");
    const others = path.m.length - (own >= 0), counting = used - (own >= 0 && weights[own] > 1e-9);
    const counted = (counting === 1 ? "1 of " + others + " sources counts"
      : counting + " of " + others + " sources count")
      + (own >= 0 && weights[own] > 1e-9 ? " beside your reference, together" : ",");
    words.replaceChildren();
    const strong = document.createElement("b");
    strong.textContent = lambda === Infinity ? "λ = ∞. " : "λ = " + round(lambda) + ". ";
    let text = "A source counts only if its discrepancy is below " + round(mu) + " (μ): ";
    if (lambda === Infinity) text = "Every row counts the same, whatever its source's discrepancy: ";
    if (lambda === 0) text = "Only what is closest to your reference counts: ";
    const worth = Math.round(effective);
    text += counted + " worth about " + worth.toLocaleString("en") + (worth === 1 ? " row." : " rows.");
    words.append(strong, text);
    const ranked = weights.map((w, i) => [w, i]).filter(([w]) => w > 1e-9)
      .sort((a, b) => b[0] - a[0]).slice(0, 10);
    const top = ranked.length ? ranked[0][0] : 1;
    list.replaceChildren(...ranked.map(([w, i]) => {
      const item = document.createElement("li");
      item.className = path.groups[i];
      const name = document.createElement("bdi");
      name.textContent = path.names[i];
      name.title = path.names[i];
      const bar = document.createElement("div");
      bar.className = "bar";
      const fill = document.createElement("i");
      fill.style.width = (100 * w) / top + "%";
      bar.append(fill);
      const value = document.createElement("span");
      value.textContent = percent(w);
      item.append(name, bar, value);
      return item;
    }));
    const x = (1000 * toStep(lambda === Infinity ? null : lambda)) / steps;
    marker.setAttribute("x1", x);
    marker.setAttribute("x2", x);
    slider.setAttribute("aria-valuetext", words.textContent);
  };
  const chosen = () => {
    slider.value = toStep(path.chosen);
    show(path.chosen === null ? Infinity : path.chosen);
  };
  slider.addEventListener("input", () => show(toLambda(Number(slider.value))));
  reset.addEventListener("click", chosen);
  chosen();
})();
