// Shows GraphiQL for the endpoint of this very page.
"use strict";

const element = document.getElementById("graphiql");
const fetcher = GraphiQL.createFetcher({ url: element.dataset.endpoint });
ReactDOM.createRoot(element).render(
  React.createElement(GraphiQL, {
    fetcher,
    defaultQuery: element.dataset.example,
    // A telephone has no room for the variables, too.
    defaultEditorToolsVisibility: matchMedia("(min-width: 701px)").matches,
  }),
);
