"use strict";
(() => {
  // Sorting: the button of a column sorts by the values its cells carry.
  const table = document.querySelector("table.sources");
  if (table) {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = head.querySelector("button");
      if (!button) return;
      button.addEventListener("click", () => {
        const text = head.dataset.kind === "text";
        const before = head.getAttribute("aria-sort");
        const first = text ? "ascending" : "descending";
        const other = text ? "descending" : "ascending";
        const order = before === first ? other : first;
        const sign = order === "ascending" ? 1 : -1;
        const key = (row) => row.cells[column].dataset.value;
        const rows = [...body.rows];
        rows.sort((a, b) => sign * (text ? key(a).localeCompare(key(b)) : key(a) - key(b)));
        rows.forEach((row) => body.append(row));
        heads.forEach((h) => h.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", order);
      });
    });
  }

  // The trust path: weights at any lambda, by the optimality conditions (paper, eq. 6).
  const holder = document.getElementById("path-data");
  if (!holder) return;
  const data = JSON.parse(holder.textContent);
  const total = data.m.reduce((a, b) => a + b, 0);
  const order = data.d.map((_, i) => i).sort((i, j) => data.d[i] - data.d[j]);

  const solve = (lambda) => {
    if (lambda === Infinity) return { mu: Infinity, weights: data.m.map((m) => m / total) };
    // With k the last source inside, mu = d_k + t and M t^2 + 2 S t + B = lambda^2.
    let M = 0, S = 0, B = 0, last = data.d[order[0]];
    for (const i of order) {
      const gap = data.d[i] - last;
      const nextS = S + gap * M;
      const nextB = B + gap * (S + nextS);
      if (M > 0 && gap > 0 && nextB >= lambda * lambda) break;
      S = nextS; B = nextB; last = data.d[i]; M += data.m[i];
    }
    const rest = Math.max(lambda * lambda - B, 0);
    const t = rest > 0 ? rest / (S + Math.sqrt(S * S + M * rest)) : 0;
    const mu = last + t;
    let weights = data.d.map((d, i) => data.m[i] * Math.max(mu - d, 0));
    let sum = weights.reduce((a, b) => a + b, 0);
    if (!(sum > 0)) {
      const low = data.d[order[0]];
      weights = data.d.map((d, i) => (d === low ? data.m[i] : 0));
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
  const span = Math.log(data.high / data.low);
  const toLambda = (s) => (s <= 0 ? 0 : s >= steps ? Infinity
    : data.low * Math.exp(((s - 1) / (steps - 2)) * span));
  const toStep = (lambda) => (lambda === null ? steps : lambda <= 0 ? 0
    : Math.min(Math.max(1 + (Math.log(lambda / data.low) / span) * (steps - 2), 1), steps - 1));
  const percent = (x) => (100 * x).toFixed(1) + " %";
  const round = (x) => (x === 0 ? "0" : Number(x.toPrecision(3)).toString());

  const show = (lambda) => {
    const { mu, weights } = solve(lambda);
    const used = weights.filter((w) => w > 1e-9).length;
    const effective = 1 / weights.reduce((a, w, i) => a + (w * w) / data.m[i], 0);
    const counted = used === 1 ? "1 of " + data.m.length + " sources counts"
      : used + " of " + data.m.length + " sources count";
    words.replaceChildren();
    const strong = document.createElement("b");
    strong.textContent = lambda === Infinity ? "λ = ∞. " : "λ = " + round(lambda) + ". ";
    let text = "A source counts only if its discrepancy is below " + round(mu) + " (μ): ";
    if (lambda === Infinity) text = "Every row counts the same, whatever its source's discrepancy: ";
    if (lambda === 0) text = "Only what is closest to your reference counts: ";
    text += counted + ", the reference included, worth about " + Math.round(effective) + " rows.";
    words.append(strong, text);
    const ranked = weights.map((w, i) => [w, i]).filter(([w]) => w > 1e-9)
      .sort((a, b) => b[0] - a[0]).slice(0, 10);
    const top = ranked.length ? ranked[0][0] : 1;
    list.replaceChildren(...ranked.map(([w, i]) => {
      const item = document.createElement("li");
      item.className = data.groups[i];
      const name = document.createElement("bdi");
      name.textContent = data.names[i];
      name.title = data.names[i];
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
    slider.value = toStep(data.chosen);
    show(data.chosen === null ? Infinity : data.chosen);
  };
  slider.addEventListener("input", () => show(toLambda(Number(slider.value))));
  reset.addEventListener("click", chosen);
  document.querySelectorAll("[data-needs-script]").forEach((e) => { e.hidden = false; });
  chosen();
})();
