// The live face of a recorded run. `root` holds the static one; `data` is Stream.to_json() and the look.
// Only text nodes and attributes are ever set, so a token's text cannot become anything else than text.
(root, data) => {
  if (root.shadowRoot) return;
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };
  const className = (origin) => origin.split(" ")[0];
  const last = data.rounds.length;
  let shown = last; // rounds that are shown
  let picked = null; // the span that was clicked, if any
  let timer = null;

  // Tokens: each emitted one stands in the text, where it keeps its place from the start, so that nothing
  // moves while playing; and every one stands in the line of its round.
  const token = (span) => {
    const element = make(
      "span",
      { class: `token ${className(span.origin)}`, role: "button", tabindex: "-1", dir: "auto" },
      span.signed,
    );
    element.setAttribute("aria-label", `${span.text}: ${span.origin}`);
    element.addEventListener("mouseenter", () => explain(span));
    element.addEventListener("mouseleave", () => explain(chosen()));
    element.addEventListener("focus", () => explain(span));
    element.addEventListener("click", () => pick(span));
    element.span = span;
    return element;
  };
  const emitted = data.spans.filter((span) => span.emitted);
  const text = make("div", { class: "text", role: "group", "aria-label": "the text so far" });
  text.append(...emitted.map(token));
  const line = make("div", { class: "round", role: "group", "aria-label": "the draft of this round" });

  // Controls.
  const button = (label, title, act, kind = "") => {
    const element = make("button", { type: "button", title, "aria-label": title, class: kind }, label);
    element.addEventListener("click", act);
    return element;
  };
  const slider = make("input", { type: "range", min: 0, max: last, step: 1, "aria-label": "rounds shown" });
  slider.addEventListener("input", () => jump(Number(slider.value)));
  const where = make("output", {});
  const play = button("▶ play", "play or pause (space)", toggle, "play");
  const pace = make("input", { type: "checkbox" });
  const bar = make(
    "div",
    { class: "bar", role: "toolbar", "aria-label": "player" },
    button("|‹", "to the start (Home)", () => jump(0)),
    button("‹", "one round back (←)", () => jump(shown - 1)),
    play,
    button("›", "one round on (→)", () => jump(shown + 1)),
    button("›|", "to the end (End)", () => jump(last)),
    slider,
    where,
  );
  if (data.seconds.length) bar.append(make("label", { class: "small" }, pace, " as fast as it ran"));

  // Beside and below the text.
  const counts = make("dl", { "aria-label": "counts so far" });
  const values = data.counts[0].map(([name]) => {
    const value = make("dd");
    counts.append(make("dt", {}, name), value);
    return value;
  });
  const detail = make("div", { class: "detail", "aria-live": "polite" });

  const entries = (span) => Math.max(span.p.length, span.q.length, span.residual.length);
  const tallest = Math.max(0, ...data.spans.map(entries));
  detail.style.minHeight = data.traced ? `${5.3 + 1.3 * tallest}rem` : "5.6rem";

  const number = (value) =>
    value >= 0.0005 || value === 0 ? value.toFixed(3) : value.toExponential(0);

  function bars(kind, title, entries, name) {
    const column = make("div", { class: kind }, make("div", { class: "small" }, title));
    for (const [label, value] of entries) {
      const fill = make("div", { class: "fill", style: `width:${(100 * value).toFixed(1)}%` });
      column.append(
        make(
          "div",
          { class: label === name ? "entry this" : "entry" },
          make("span", { class: "name", title: label, dir: "auto" }, label.replace("⏎\n", "⏎")),
          make("div", { class: "track" }, fill),
          make("span", { class: "value" }, number(value)),
        ),
      );
    }
    if (!entries.length) column.append(make("div", { class: "small" }, "none here"));
    return column;
  }

  function explain(span) {
    if (!span) {
      detail.replaceChildren(make("p", { class: "small" }, "Step on, then point at a token, or click it."));
      return;
    }
    const name = make("span", { class: `token ${className(span.origin)}`, dir: "auto" }, span.text.trim());
    const numbers = make("div", { class: "numbers" });
    for (const [label, value] of span.numbers) numbers.append(make("span", {}, `${label} `, make("b", {}, value)));
    const head = make("p", {}, name, `: ${span.origin}, round ${span.round + 1}. ${span.why}`);
    detail.replaceChildren(head, numbers);
    if (data.traced) {
      const columns = make("div", { class: "bars" });
      columns.append(
        bars("p", "p, the target", span.p, span.text),
        bars("q", "q, the draft", span.q, span.text),
        bars("residual", "the residual", span.residual, span.text),
      );
      detail.append(columns);
    } else {
      detail.append(make("p", { class: "small" }, "p, q and the residual were not recorded (trace=True does)."));
    }
  }

  // What is explained while nothing is pointed at: the token clicked, else the one that ended the round.
  function chosen() {
    if (picked && picked.round < shown) return picked;
    const mine = data.spans.filter((span) => span.round === shown - 1);
    return mine.find((span) => span.origin === "rejected") ?? mine[mine.length - 1];
  }

  function pick(span) {
    picked = picked === span ? null : span;
    mark();
    explain(chosen());
  }

  function mark() {
    for (const element of [...text.children, ...line.querySelectorAll(".token")]) {
      element.classList.toggle("picked", element.span === picked);
    }
  }

  function go(rounds) {
    shown = Math.max(0, Math.min(last, rounds));
    if (picked && picked.round !== shown - 1) picked = null;
    slider.value = shown;
    where.value = shown ? `round ${shown} of ${last}` : `start, ${last} rounds`;
    for (const element of text.children) {
      element.classList.toggle("future", element.span.round >= shown);
      element.classList.toggle("now", element.span.round === shown - 1);
    }
    values.forEach((value, index) => (value.textContent = data.counts[shown][index][1]));
    const mine = data.spans.filter((span) => span.round === shown - 1);
    const words = shown ? data.rounds[shown - 1] : "nothing yet";
    line.replaceChildren(...mine.map(token), make("div", { class: "small" }, words));
    const current = text.querySelectorAll(".now");
    keepInSight(current[current.length - 1]);
    const first = line.querySelector(".token") ?? text.querySelector(".token");
    for (const element of text.children) element.tabIndex = -1;
    if (first) first.tabIndex = 0;
    mark();
    explain(chosen());
  }

  function keepInSight(element) {
    if (!element) return;
    // Not scrollIntoView, which would scroll the notebook, too.
    const below = element.offsetTop + element.offsetHeight - text.offsetTop - text.clientHeight;
    if (below > text.scrollTop || element.offsetTop - text.offsetTop < text.scrollTop) text.scrollTop = below + 8;
  }

  function start() {
    if (shown === last) go(0);
    play.textContent = "⏸ pause";
    const tick = () => {
      timer = null;
      go(shown + 1);
      if (shown < last) timer = setTimeout(tick, wait());
      else stop();
    };
    const wait = () => (pace.checked ? 1000 * data.seconds[shown] : 700);
    timer = setTimeout(tick, pace.checked ? wait() : 250);
  }

  function toggle() {
    if (timer === null) start();
    else stop();
  }

  function jump(rounds) {
    stop();
    go(rounds);
  }

  function stop() {
    clearTimeout(timer);
    timer = null;
    play.textContent = "▶ play";
  }

  // Arrow keys walk over tokens when one has the focus, else over rounds.
  const keys = {
    ArrowRight: () => jump(shown + 1),
    ArrowLeft: () => jump(shown - 1),
    Home: () => jump(0),
    End: () => jump(last),
    " ": toggle,
  };
  const onKey = (event) => {
    const target = event.composedPath()[0];
    const act = target.span ? keyOnToken(event.key, target) : target === slider ? null : keys[event.key];
    if (!act || (target.tagName === "BUTTON" && event.key === " ")) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  };

  function keyOnToken(key, target) {
    if (key === "Enter" || key === " ") return () => pick(target.span);
    const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (!step) return null;
    const visible = [...text.children].filter((element) => element.span.round < shown);
    const all = target.parentElement === text ? visible : [...line.querySelectorAll(".token")];
    const next = all[all.indexOf(target) + step];
    return () => next && ((target.tabIndex = -1), (next.tabIndex = 0), next.focus());
  }

  const legend = make("div", { class: "legend small" });
  for (const [origin, label] of data.legend) {
    if (!data.spans.some((span) => span.origin === origin)) continue;
    legend.append(make("span", { class: `token ${className(origin)}` }, label));
  }
  go(last);

  // Only now, so that the static face stays if anything above has failed.
  const shadow = root.attachShadow({ mode: "open" });
  shadow.addEventListener("keydown", onKey);
  shadow.append(
    make("style", {}, data.css),
    make("div", { class: "small" }, make("span", { class: "badge" }, data.kind), ` ${data.note}`),
    bar,
    make("p", { class: "small", dir: "auto" }, data.prompt),
    make("div", { class: "main" }, make("div", {}, text, line), counts),
    detail,
    legend,
    make("p", { class: "small" }, data.starred),
    ...data.remarks.map((remark) => make("p", { class: "small" }, remark)),
  );
  keepInSight(text.lastChild);
}
