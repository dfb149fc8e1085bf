// Shows GraphiQL for the endpoint of this very page.
"use strict";

const element = document.getElementById("graphiql");
const send = GraphiQL.createFetcher({ url: element.dataset.endpoint });
const VISITED = "signpost:graphiql";
let requests = 0;

// GraphiQL asks for the schema first. On the first visit it then executes the first example.
const fetcher = async (...request) => {
  requests += 1;
  const result = await send(...request);
  if (localStorage.getItem(VISITED) === null) {
    localStorage.setItem(VISITED, "true");
    if (requests === 1) {
      setTimeout(() => document.querySelector(".graphiql-execute-button").click());
    }
  }
  return result;
};

const examples = JSON.parse(document.getElementById("examples").textContent);
ReactDOM.createRoot(element).render(
  React.createElement(GraphiQL, {
    fetcher,
    defaultTabs: examples,
    defaultHeaders: examples[0].headers, // of further tabs
    // A token must not stay in the browser.
    shouldPersistHeaders: false,
    // A telephone has no room for the variables, too.
    defaultEditorToolsVisibility: matchMedia("(min-width: 701px)").matches,
  }),
);
