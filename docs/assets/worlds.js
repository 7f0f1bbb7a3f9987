// The pictures of the page "Concepts". Their data are in worlds-data.js, computed by lols.reproduction.theory; this file only
// draws them. Controls are ordinary inputs, so that the keyboard works and screen readers read the results.
(function () {
  "use strict";
  const data = window.LOLS_WORLDS;
  const NS = "http://www.w3.org/2000/svg";

  // --- helpers -------------------------------------------------------------------------------------------------------

  function svg(name, attributes, text) {
    const made = document.createElementNS(NS, name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function html(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    made.append(...children);
    return made;
  }

  // A group of radio buttons; `choices` are pairs of a value and a label.
  function radios(title, name, choices, chosen, changed) {
    const field = html("fieldset", {}, html("legend", {}, title));
    for (const [value, label] of choices) {
      const input = html("input", { type: "radio", name: name, value: value });
      input.checked = value === chosen;
      input.addEventListener("change", () => changed(value));
      field.append(html("label", {}, input, " " + label));
    }
    return field;
  }

  function frame(width, height, label) {
    return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  }

  function edge(g, from, to, kind) {
    g.append(svg("line", { x1: from.x, y1: from.y, x2: to.x, y2: to.y, class: "edge " + kind }));
  }

  function label(g, x, y, text, kind, anchor) {
    g.append(svg("text", { x: x, y: y, class: kind || "", "text-anchor": anchor || "middle" }, text));
  }

  const between = (a, b, share) => ({ x: a.x + (b.x - a.x) * share, y: a.y + (b.y - a.y) * share });
  const say = (value) => String(value);

  // --- one round -----------------------------------------------------------------------------------------------------

  const TAGS = ["noun", "verb"];
  const PHASES = [
    ["in", "1. roll in"],
    ["deviate", "2. deviate"],
    ["reference", "3. roll out: teacher"],
    ["learned", "3. roll out: policy"],
  ];

  function oneRound(home) {
    const world = data.round;
    const at = {};
    let leaf = 0;
    (function place(state, depth) {
      const inner = state < world.follow.length;
      if (!inner) {
        at[state] = { x: 375, y: 26 + 36 * leaf++ };
        return;
      }
      const [up, down] = world.follow[state];
      place(up, depth + 1);
      place(down, depth + 1);
      at[state] = { x: 24 + 117 * depth, y: (at[up].y + at[down].y) / 2 };
    })(0, 0);

    const picture = html("div", { class: "picture" });
    const words = html("p", { class: "says", role: "status" });
    let phase = "in";
    let step = 1;

    function draw() {
      const g = frame(450, 310, "A tree of three decisions");
      const path = world.steps.map((made) => made.state);
      const taken = (state) => world.follow[state][world.learned[state]];
      const kinds = {};
      for (const state of path) kinds[state + " " + taken(state)] = "rolled";
      const here = path[step];
      const lines = [];
      if (phase === "in") {
        const end = taken(path[2]) - world.follow.length;
        lines.push(`The current policy decides for each word in turn, and reaches an end state with loss ${say(world.losses[end])}.`);
      } else {
        for (const state of path.slice(step)) delete kinds[state + " " + taken(state)];
        for (const after of world.follow[here]) kinds[here + " " + after] = "deviation";
        lines.push(`At word ${step + 1} every action is tried: the one that the policy took, and the other.`);
      }
      if (phase === "reference" || phase === "learned") {
        const who = phase === "reference" ? "the teacher" : "the policy itself";
        for (let after of world.follow[here]) {
          while (after < world.follow.length) {
            const next = world.follow[after][world[phase][after]];
            kinds[after + " " + next] = phase;
            after = next;
          }
        }
        const losses = world.steps[step].losses[phase];
        const least = Math.min(...losses);
        lines[0] = `After each action at word ${step + 1}, ${who} completes the sentence.`;
        lines.push(losses.map((loss, a) => `“${TAGS[a]}” ends with loss ${say(loss)}: cost ${say(loss - least)}`).join("; ") + ".");
      }
      for (const state in world.follow) {
        world.follow[state].forEach((after, a) => {
          edge(g, at[state], at[after], kinds[state + " " + after] || "idle");
          const middle = between(at[state], at[after], 0.55);
          label(g, middle.x, middle.y - 4, TAGS[a], "small");
        });
      }
      for (const key in at) {
        const state = Number(key);
        const end = state >= world.follow.length;
        const now = phase !== "in" && state === here;
        g.append(svg("circle", { cx: at[key].x, cy: at[key].y, r: end ? 4 : 9, class: now ? "state now" : path.includes(state) ? "state seen" : "state" }));
        if (end) label(g, at[key].x + 14, at[key].y + 4, "loss " + say(world.losses[state - world.follow.length]), "", "start");
      }
      picture.replaceChildren(g);
      words.replaceChildren(lines.join(" "));
    }

    const phases = radios("Step", "round-phase", PHASES, phase, (value) => { phase = value; draw(); });
    const where = radios("Word", "round-word", [["0", "1"], ["1", "2"], ["2", "3"]], "1", (value) => { step = Number(value); draw(); });
    home.append(html("div", { class: "controls" }, phases, where), picture, words);
    draw();
  }

  // --- Figure 3 ------------------------------------------------------------------------------------------------------

  const NAMES = { a: "(a)", b: "(b)", c: "(c)", d: "blind" };
  const PLACES = [
    { x: 32, y: 150 }, { x: 176, y: 76 }, { x: 176, y: 224 },
    { x: 338, y: 36 }, { x: 338, y: 116 }, { x: 338, y: 184 }, { x: 338, y: 264 },
  ];

  function named(world, policy) {
    return world.features.map((pair, state) => {
      const first = policy.first[state];
      const what = first === 1 ? pair[0] : first === 0 ? pair[1] : pair[0] === pair[1] ? pair[0] : pair[0] + " or " + pair[1];
      return `s${state + 1}: ${what}`;
    }).join(", ");
  }

  function figure3(home) {
    const chosen = { world: "a", in: "reference", out: "reference", policy: 0 };
    const picture = html("div", { class: "picture" });
    const words = html("p", { class: "says", role: "status" });
    const select = html("select", { id: "worlds-policy" });
    select.addEventListener("change", () => { chosen.policy = Number(select.value); draw(); });

    function strategy() {
      return data.worlds[chosen.world].strategies[chosen.in + " " + chosen.out];
    }

    // The policies that training may stay with for ever, the worst first; then the others.
    function choose() {
      const world = data.worlds[chosen.world];
      const made = strategy();
      const order = world.policies.map((_, k) => k);
      const badness = (k) => world.policies[k].loss + world.policies[k].saves / 1000;
      const stays = order.filter((k) => made[k].regret === 0).sort((j, k) => badness(k) - badness(j));
      const leaves = order.filter((k) => made[k].regret > 0).sort((j, k) => badness(j) - badness(k));
      const group = (title, members) => {
        const list = html("optgroup", { label: title });
        for (const k of members) list.append(html("option", { value: k }, `${named(world, world.policies[k])} (loss ${say(world.policies[k].loss)})`));
        return list;
      };
      select.replaceChildren(group("training may end with", stays), group("training moves on from", leaves));
      chosen.policy = stays[0];
      select.value = String(stays[0]);
      draw();
    }

    function draw() {
      const world = data.worlds[chosen.world];
      const policy = world.policies[chosen.policy];
      const made = strategy()[chosen.policy];
      const g = frame(450, 300, "The world, the costs that training sees, and the policy");
      const seen = {};
      for (const [state, chance, up, down] of made.seen) seen[state] = { chance: chance, costs: [up, down] };
      for (let state = 0; state < 3; state++) {
        for (let a = 0; a < 2; a++) {
          const to = state === 0 ? 1 + a : 1 + 2 * state + a;
          const share = a === 0 ? policy.first[state] : 1 - policy.first[state];
          edge(g, PLACES[state], PLACES[to], share === 1 ? "rolled" : share > 0 ? "maybe" : "idle");
          const middle = between(PLACES[state], PLACES[to], 0.46);
          const teacher = world.reference[state] === a;
          label(g, middle.x, middle.y - 7, world.features[state][a] + (teacher ? " ★" : ""), teacher ? "letter teacher" : "letter");
          if (seen[state]) {
            const spot = between(PLACES[state], PLACES[to], 0.76);
            label(g, spot.x, spot.y - 7, "+" + say(seen[state].costs[a]), seen[state].costs[a] > 0 ? "cost dear" : "cost");
          }
        }
      }
      for (let state = 0; state < 3; state++) {
        const { x, y } = PLACES[state];
        g.append(svg("circle", { cx: x, cy: y, r: 17, class: seen[state] ? "state seen" : "state" }));
        label(g, x, y + 4, "s" + (state + 1), "name");
        const below = seen[state] ? (seen[state].chance < 1 ? `seen ${say(seen[state].chance)} of the time` : "seen") : "never seen";
        label(g, Math.max(x, 34), y + 33, below, seen[state] ? "small" : "small unseen");
      }
      for (let e = 0; e < 4; e++) {
        const { x, y } = PLACES[3 + e];
        g.append(svg("circle", { cx: x, cy: y, r: 4, class: "state" }));
        label(g, x + 12, y + 4, `e${e + 1}, loss ${say(world.losses[e])}`, "", "start");
      }
      picture.replaceChildren(g);
      const parts = [`The policy loses ${say(policy.loss)}, the teacher ${say(world.referenceLoss)}.`];
      parts.push(policy.saves > 0 ? `One changed decision would save ${say(policy.saves)}.` : "No single changed decision would help: the policy is locally optimal.");
      parts.push(made.regret === 0
        ? "On the costs that training sees, no policy does better: training may keep this policy forever."
        : `On the costs that training sees, another policy does better by ${say(made.regret)}: training does not keep this one.`);
      words.replaceChildren(parts.join(" "));
    }

    const change = (key) => (value) => { chosen[key] = value; choose(); };
    const worlds = Object.keys(NAMES).map((key) => [key, NAMES[key]]);
    home.append(
      html("div", { class: "controls" },
        radios("World", "figure3-world", worlds, chosen.world, change("world")),
        radios("Roll in", "figure3-in", [["reference", "teacher"], ["learned", "policy"]], chosen.in, change("in")),
        radios("Roll out", "figure3-out", [["reference", "teacher"], ["mixture", "mixture"], ["learned", "policy"]], chosen.out, change("out"))),
      html("p", { class: "pick" }, html("label", { for: "worlds-policy" }, "Policy "), select),
      picture, words);
    choose();
  }

  // --- β -------------------------------------------------------------------------------------------------------------

  function betas(home) {
    const { beta, worst } = data.beta;
    const picture = html("div", { class: "picture" });
    const words = html("p", { class: "says", role: "status" });
    const slider = html("input", { type: "range", min: 0, max: beta.length - 1, step: 1, value: (beta.length - 1) / 2, id: "beta-slider", "aria-label": "β" });
    const x = (k) => 34 + 400 * beta[k];
    const y = (loss) => 200 - 80 * loss;

    function draw() {
      const k = Number(slider.value);
      const g = frame(450, 250, "The worst loss that LOLS may end with, for each β");
      for (const loss of [0, 1, 2]) {
        g.append(svg("line", { x1: 34, x2: 434, y1: y(loss), y2: y(loss), class: "grid" }));
        label(g, 22, y(loss) + 4, say(loss), "small", "end");
      }
      for (const share of [0, 0.25, 0.5, 0.75, 1]) label(g, 34 + 400 * share, 222, say(share), "small");
      label(g, 34, 14, "worst loss", "small");
      label(g, 234, 244, "β, the teacher's share in the roll-outs", "small");
      const marks = { c: "cross", d: "dot" };
      for (const name of ["d", "c"]) {
        worst[name].forEach((loss, j) => {
          if (name === "d") g.append(svg("circle", { cx: x(j), cy: y(loss), r: 4.5, class: "mark " + marks[name] }));
          else g.append(svg("path", { d: `M${x(j) - 4},${y(loss) - 4}l8,8m0,-8l-8,8`, class: "mark " + marks[name] }));
        });
      }
      label(g, 172, y(2) + 5, "the blind world", "mark-label dot", "start");
      label(g, 382, y(0.9) + 5, "world (c)", "mark-label cross", "end");
      g.append(svg("line", { x1: x(k), x2: x(k), y1: 20, y2: 205, class: "cursor" }));
      picture.replaceChildren(g);
      const c = worst.c[k], d = worst.d[k];
      const verdict = c === 0 && d === 0 ? "Both worlds are solved." : c > 0 ? "In world (c) the poor teacher's completions hide the better actions." : "In the blind world the policy's own completions hide what the teacher knows.";
      words.replaceChildren(`β = ${say(beta[k])}: training may end with a loss of ${say(c)} in world (c) and of ${say(d)} in the blind world. ${verdict}`);
    }

    slider.addEventListener("input", draw);
    home.append(html("p", { class: "pick" }, html("label", { for: "beta-slider" }, "β "), slider), picture, words);
    draw();
  }

  for (const [id, build] of [["one-round", oneRound], ["figure-3", figure3], ["betas", betas]]) {
    const home = document.getElementById("picture-" + id);
    if (home && data) {
      home.replaceChildren();
      build(home);
    }
  }
})();
