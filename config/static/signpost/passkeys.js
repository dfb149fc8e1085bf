// Asks the browser for a passkey when a form with the options of one is sent, and sends its answer.
// The button is disabled until this script runs: a form sent without it would always be refused.
"use strict";

for (const form of document.querySelectorAll("form[data-passkey]")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const problem = form.querySelector("[role=alert]");
    problem.hidden = true;
    try {
      const options = JSON.parse(form.dataset.passkey);
      const credential = await ("user" in options
        ? navigator.credentials.create({
          publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options),
        })
        : navigator.credentials.get({
          publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options),
        }));
      form.elements.credential.value = JSON.stringify(credential.toJSON());
      form.submit();
    } catch {
      problem.hidden = false;
    }
  });
  form.querySelector("button").disabled = false;
}
