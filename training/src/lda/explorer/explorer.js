// A map of topics: each is a circle, as large as its share of the tokens, near topics of like words. What is chosen shows its words by
// relevance (Sievert and Shirley 2014) and its documents; a word shows where it occurs. `data` is what `TopicModel::explored` returns.
function topicExplorer(data) {
  const SIZE = 480, MARGIN = 60, WORDS = 30;
  const percent = share => (100 * share).toFixed(1) + " %";
  const byNumber = new Map(data.topics.map(topic => [topic.topic, topic]));
  const byName = new Map(data.words.map((word, index) => [word.name, index]));
  let chosen = data.topics[0], word = null;

  // Places, with the same scale on both axes.
  const axis = at => data.topics.map(topic => topic.place[at]);
  const [least, most] = [0, 1].map(at => [Math.min(...axis(at)), Math.max(...axis(at))]).reduce(
    ([lows, highs], [low, high]) => [[...lows, low], [...highs, high]], [[], []]);
  const extent = Math.max(most[0] - least[0], most[1] - least[1]) || 1;
  const place = topic => topic.place.map((value, at) => SIZE / 2 + (value - (least[at] + most[at]) / 2) / extent * (SIZE - 2 * MARGIN));
  const radius = topic => Math.max(4, 130 * Math.sqrt(topic.share / Math.PI));

  const circles = new Map();
  const map = draw("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "group", "aria-label": "Map of topics" });
  for (const topic of data.topics) {
    const [x, y] = place(topic);
    const label = `topic ${topic.topic}, ${percent(topic.share)} of the tokens: ${topic.words.slice(0, 5).map(([index]) => data.words[index].name).join(" ")}`;
    const circle = draw("circle", { cx: x, cy: y, r: radius(topic), tabindex: 0, role: "button", "aria-label": label }, draw("title", {}));
    circle.firstChild.textContent = label;
    circle.addEventListener("click", () => choose(topic));
    circle.addEventListener("keydown", event => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(topic); }
    });
    const number = draw("text", { x, y });
    number.textContent = topic.topic;
    circles.set(topic.topic, circle);
    map.append(circle, number);
  }

  const topics = make("select", { name: "topic" }, ...data.topics.map(topic => make("option", { value: topic.topic }, `${topic.topic} (${percent(topic.share)})`)));
  topics.addEventListener("change", () => choose(byNumber.get(Number(topics.value))));
  const lambda = make("input", { type: "range", name: "lambda", min: 0, max: 1, step: 0.1, value: 0.6 });
  const weight = make("output", {});
  lambda.addEventListener("input", showWords);
  const names = make("datalist", { id: "words" }, ...data.words.map(word => make("option", { value: word.name })));
  const search = make("input", { type: "search", name: "word", autocomplete: "off", placeholder: "a word" });
  search.setAttribute("list", "words");
  search.addEventListener("input", () => seek(search.value.trim()));
  const found = make("p", { className: "weak" });
  found.setAttribute("role", "status");
  const words = make("table", { className: "words" }), documents = make("table", { className: "documents" });
  const title = make("h2", {}), headed = make("h2", {}, "Documents with the most of it");

  function relevance([index, count]) {
    const chance = Math.log((count + data.beta) / (chosen.tokens + data.beta * data.vocabulary));
    return chance - (1 - Number(lambda.value)) * Math.log(data.words[index].tokens / data.tokens);
  }

  function showWords() {
    weight.value = `λ = ${Number(lambda.value).toFixed(1)}`;
    const best = chosen.words.map(entry => ({ entry, score: relevance(entry) })).sort((a, b) => b.score - a.score).slice(0, WORDS);
    const widest = Math.max(...best.map(({ entry: [index] }) => data.words[index].tokens), 1);
    words.replaceChildren(...best.map(({ entry: [index, count] }) => {
      const { name, tokens } = data.words[index];
      const button = make("button", { type: "button", onclick: () => { search.value = name; seek(name); } }, name);
      const inside = make("div"), all = make("div", { title: `${count} of ${tokens} tokens` }, inside);
      all.style.width = 100 * tokens / widest + "%";
      inside.style.width = 100 * count / tokens + "%";
      return make("tr", {}, make("td", {}, button), make("td", { className: "number" }, String(count)), make("td", { className: "bar" }, all));
    }));
  }

  function choose(topic) {
    chosen = topic;
    topics.value = topic.topic;
    for (const [number, circle] of circles) circle.classList.toggle("chosen", number === topic.topic);
    title.textContent = `Words of topic ${topic.topic}`;
    headed.hidden = topic.documents.length === 0;
    documents.replaceChildren(...topic.documents.map(({ name, share }) => {
      const inside = make("div");
      inside.style.width = 100 * share + "%";
      return make("tr", {}, make("td", {}, name), make("td", { className: "number" }, percent(share)), make("td", { className: "bar" }, inside));
    }));
    showWords();
  }

  // Shows where a word occurs: the more of it in a topic, the stronger its circle.
  function seek(name) {
    word = byName.has(name) ? data.words[byName.get(name)] : null;
    for (const circle of circles.values()) circle.style.fillOpacity = word ? 0.08 : "";
    for (const [topic, count] of word?.topics ?? []) circles.get(topic).style.fillOpacity = 0.08 + 0.92 * count / word.tokens;
    if (word) choose(byNumber.get(word.topics[0][0]));
    const where = ([topic, count]) => `${percent(count / word.tokens)} in topic ${topic}`;
    found.textContent = word ? `${word.tokens} tokens: ${word.topics.slice(0, 5).map(where).join(", ")}`
      : name && "No topic has this word among its most relevant ones.";
  }

  choose(chosen);
  return make("div", { className: "explorer" },
    make("div", {}, make("form", { onsubmit: event => event.preventDefault() },
      make("label", {}, "Find a word", search, names), make("label", { className: "short" }, "Topic", topics)), found, map,
      make("p", { className: "weak" }, "A circle is as large as its topic's share of all tokens. Near topics have like words.")),
    make("div", {}, title, make("form", { onsubmit: event => event.preventDefault() },
      make("label", {}, "From words of this topic only (left) to its most frequent words (right)", lambda), weight), words, headed, documents));
}
