// Swagger UI's own dark colours, when the system asks for dark.
"use strict";

const dark = matchMedia("(prefers-color-scheme: dark)");
const show = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", show);
show();

// A plugin of Swagger UI: the code samples of an operation, below its parameters.
const codeSamples = ({ React: { createElement } }) => ({
  wrapComponents: {
    responses: (Responses) => (props) => {
      const document = props.specSelectors.specJson();
      const samples = document.getIn(["paths", props.path, props.method, "x-codeSamples"]);
      const shown = (samples ? samples.toJS() : []).map(({ label, source }) =>
        createElement("details", { key: label },
          createElement("summary", null, label),
          createElement("pre", { tabIndex: 0 }, createElement("code", null, source))));
      return createElement("div", null,
        createElement("section", { className: "code-samples", "aria-label": "Code samples" }, ...shown),
        createElement(Responses, props));
    },
  },
});
