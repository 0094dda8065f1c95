// The console's script: it sends forms to the JSON API and shows the answers.
// Every form with data-action is sent as JSON; all other forms are plain searches.
"use strict";

const words = document.body.dataset;
const notice = document.getElementById("notice");

/** Shows a notice above the page, scrolls to it, and lets screen readers read it. */
function say(text, kind = "info") {
  notice.textContent = text;
  notice.className = kind;
  if (text) notice.scrollIntoView({ block: "nearest" });
}

// A notice of the previous page, shown after the navigation.
const kept = sessionStorage.getItem("mss-notice");
if (kept) {
  sessionStorage.removeItem("mss-notice");
  say(kept, "good");
}

// ---- theme and language ---------------------------------------------------------------------------------------------

const theme = localStorage.getItem("mss-theme");
if (theme) document.documentElement.dataset.theme = theme;

document.querySelector("[data-theme-switch]")?.addEventListener("click", () => {
  const isDark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  const next = isDark ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  localStorage.setItem("mss-theme", next);
});

document.querySelector("[data-language]")?.addEventListener("click", async (event) => {
  const language = event.target.dataset.language;
  document.cookie = `mss-language=${language}; path=/; max-age=31536000; samesite=strict`;
  if (formToken()) await call("PUT", "/api/v1/me/language", { language }).catch(() => {});
  location.reload();
});

// Pages without an instance of their own, and the start page after a sign-in, use the instance that was viewed last.
if (words.instance) {
  document.cookie = `mss-instance=${encodeURIComponent(words.instance)}; path=/; max-age=31536000; samesite=strict`;
}

// ---- times in the reader's zone -------------------------------------------------------------------------------------

const clock = new Intl.DateTimeFormat("en-GB", {
  year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit",
  hourCycle: "h23", timeZoneName: "short",
});

/** A time in the same form for every language: 2026-11-21 23:24:14 GMT+8. */
function localTime(moment) {
  const part = Object.fromEntries(clock.formatToParts(moment).map(({ type, value }) => [type, value]));
  return `${part.year}-${part.month}-${part.day} ${part.hour}:${part.minute}:${part.second} ${part.timeZoneName}`;
}

/** Writes the times below a chart in the reader's time zone: 23:24, or 11-21 23:24 where it spans days. */
function axisTimes(part) {
  for (const text of part.querySelectorAll("text[data-axis]")) {
    const whole = localTime(new Date(Number(text.dataset.axis)));
    text.textContent = "days" in text.dataset ? whole.slice(5, 16) : whole.slice(11, 16);
  }
}

/** Gives each table cell the name of its column: on a phone a row becomes a block of names and values. */
function stackTables(part) {
  for (const table of part.querySelectorAll("table")) {
    const names = [...table.querySelectorAll("thead th")].map((name) => name.textContent.trim());
    if (!names.length) continue;
    table.classList.add("stacked");
    for (const cell of table.querySelectorAll("tbody td:not([colspan])")) {
      cell.dataset.label = names[cell.cellIndex] ?? "";
      // The layout of a cell is its name and one value, so several nodes are wrapped in one element.
      if (cell.childNodes.length > 1) {
        const value = document.createElement("div");
        value.append(...cell.childNodes);
        cell.append(value);
      }
    }
  }
}

/** Writes every time of a part of the page in the reader's time zone. */
function localTimes(part) {
  for (const time of part.querySelectorAll("time[data-local]")) {
    const moment = new Date(Number(time.dataset.local));
    time.dateTime = moment.toISOString();
    time.title = moment.toISOString();
    time.textContent = localTime(moment);
  }
}

/** Completes a part of a page: the page itself, or a live update. */
function finish(part) {
  localTimes(part);
  axisTimes(part);
  stackTables(part);
}
finish(document);

// Local date and time inputs are sent as milliseconds since 1970.
for (const input of document.querySelectorAll("input[data-moment]")) {
  const hidden = input.form.elements[input.dataset.moment];
  if (hidden.value) {
    const moment = new Date(Number(hidden.value));
    input.value = new Date(moment - moment.getTimezoneOffset() * 60000).toISOString().slice(0, 16);
  }
  input.addEventListener("change", () => {
    hidden.value = input.value ? String(new Date(input.value).getTime()) : "";
  });
}
// Empty values are left out of the address.
for (const form of document.querySelectorAll("form[method=get]")) {
  form.addEventListener("formdata", (event) => {
    for (const [name, value] of [...event.formData]) if (value === "") event.formData.delete(name);
  });
}

// After a search the focus moves to the results, and their number is announced.
for (const form of document.querySelectorAll("form[role=search]")) {
  form.addEventListener("submit", () => sessionStorage.setItem("mss-searched", "yes"));
}
if (sessionStorage.getItem("mss-searched")) {
  sessionStorage.removeItem("mss-searched");
  const results = document.querySelector("[data-results]");
  results?.focus({ preventScroll: true });
  const rows = results?.querySelectorAll("tbody tr").length;
  if (results) say(rows ? words.found.replace("%", rows) : results.querySelector(".empty")?.textContent ?? "");
}

// On a phone the tabs are wider than the page, so the current one is scrolled into view.
document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

// ---- calls ----------------------------------------------------------------------------------------------------------

const formToken = () => document.querySelector('meta[name="form-token"]')?.content;

/** One call of the API; throws a refusal as {status, code, detail, field}. */
async function call(method, path, body) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (formToken()) headers["X-MSS-Form-Token"] = formToken();
  let response;
  try {
    response = await fetch(path, {
      method, headers, body: body === undefined ? undefined : JSON.stringify(body), credentials: "same-origin",
    });
  } catch {
    throw { status: 0, detail: words.offline };
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw { status: response.status, detail: words.failed, ...answer };
  return answer;
}

/** Shows a dialog and returns whether it was confirmed. */
function confirmed(dialog) {
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}

function ask(title, text, yes) {
  const dialog = document.getElementById("ask");
  document.getElementById("ask-title").textContent = title;
  document.getElementById("ask-text").textContent = text;
  document.getElementById("ask-yes").textContent = yes || words.yes;
  document.getElementById("ask-yes").setAttribute("aria-label", title);
  return confirmed(dialog);
}

/**
 * Asks for the password until it is right; false when the operator cancels.
 *
 * @param title - the action that needs the password.
 */
async function passwordGiven(title) {
  document.getElementById("password-what").textContent = title;
  const input = document.getElementById("password-again");
  const fault = document.getElementById("password-fault");
  fault.textContent = "";
  for (;;) {
    input.value = "";
    if (!(await confirmed(document.getElementById("password")))) return false;
    try {
      await call("POST", "/api/v1/session/confirm", { password: input.value });
      return true;
    } catch (problem) {
      if (problem.field !== "password") throw problem;
      fault.textContent = problem.detail;
    }
  }
}

/** Loads the form token of a new session, after a sign-in in another tab; false when there is no new token. */
async function tokenRenewed() {
  const page = await fetch("/me", { credentials: "same-origin" }).then((answer) => answer.text()).catch(() => "");
  const token = new DOMParser().parseFromString(page, "text/html").querySelector('meta[name="form-token"]')?.content;
  if (!token || token === formToken()) return false;
  document.querySelector('meta[name="form-token"]').content = token;
  return true;
}

/** A call that asks for the password when the API needs it, and repeats after a new sign-in in another tab. */
async function callWithPassword(method, path, body, title) {
  try {
    return await call(method, path, body);
  } catch (problem) {
    const mayRepeat = problem.code === "PASSWORD_NEEDED" ? await passwordGiven(title)
      : problem.code === "OTHER_ORIGIN" && (await tokenRenewed());
    if (!mayRepeat) throw problem;
    return callWithPassword(method, path, body, title);
  }
}

// ---- forms ----------------------------------------------------------------------------------------------------------

/** The value of a form's field by name, for conditions. */
function valueOf(form, name) {
  const field = form.elements[name];
  if (!field) return "";
  if (field instanceof RadioNodeList) return field.value;
  return field.type === "checkbox" ? (field.checked ? "true" : "") : field.value;
}

/** `a=1 b|c=2`: every part must hold; of alternatives with | one must. A bare name holds when its box is ticked. */
function holds(form, condition) {
  return condition.split(" ").every((part) =>
    part.split("|").some((one) => {
      const [name, value] = one.split("=");
      return value === undefined ? valueOf(form, name) !== "" : valueOf(form, name) === value;
    }));
}

/** Shows the fields whose condition holds, and disables the others, so that they are not sent. */
function showFields(form) {
  for (const part of form.querySelectorAll("[data-when]")) {
    const isShown = holds(form, part.dataset.when);
    part.hidden = !isShown;
    const fields = part.matches("fieldset") ? [part] : part.querySelectorAll("input, select, textarea");
    for (const field of fields) field.disabled = !isShown;
  }
}

/** The form's values as a body for the API. */
function members(form) {
  const body = {};
  for (const field of form.elements) {
    if (!field.name || field.matches(":disabled") || field.type === "submit") continue;
    if (field.type === "radio") {
      if (field.checked) body[field.name] = field.value;
    } else if (field.type === "checkbox") {
      body[field.name] = field.checked;
    } else if (field.dataset.type === "int") {
      if (field.value !== "") body[field.name] = Number(field.value);
      else if (field.dataset.empty) body[field.name] = Number(field.dataset.empty);
    } else if (field.dataset.type === "flag") {
      body[field.name] = field.value === "true";
    } else if (field.dataset.type === "present") {
      if (field.value !== "") body[field.name] = field.value;
    } else {
      body[field.name] = field.value;
    }
  }
  const roles = rolesOf(form);
  if (roles) {
    delete body.instance;
    delete body.role;
    body.roles = roles;
  }
  return body;
}

/** An account's roles by instance; undefined when the form has none. */
function rolesOf(form) {
  const instance = form.querySelector("[data-role-instance]");
  if (!instance) return undefined;
  const roles = {};
  for (const select of form.querySelectorAll("[data-role-of]")) roles[select.dataset.roleOf] = select.value;
  // The star means every instance and the service itself; the API uses an empty id.
  if (instance.value) roles[instance.value.replace("*", "")] = form.querySelector("[data-role]").value;
  return roles;
}

function clearFaults(form) {
  for (const fault of form.querySelectorAll(".fault")) fault.remove();
  for (const field of form.querySelectorAll("[aria-invalid]")) {
    field.removeAttribute("aria-invalid");
    field.removeAttribute("aria-describedby");
  }
  say("");
}

/** Shows a refusal beside the field that it names, or above the page. */
function showFault(form, problem) {
  const field = problem.field
    && [...form.elements].find((one) => one.name === problem.field && one.type !== "hidden" && one.checkVisibility());
  if (!field) return say(problem.detail, "bad");
  const fault = document.createElement("span");
  fault.className = "fault";
  fault.id = `fault-${problem.field}`;
  fault.setAttribute("role", "alert");
  fault.textContent = problem.detail;
  (field.closest("label, fieldset") || field).append(fault);
  field.setAttribute("aria-invalid", "true");
  field.setAttribute("aria-describedby", fault.id);
  field.focus();
}

/** Fills the elements of a part with the members of an answer, and shows the part. */
function showAnswer(part, answer) {
  for (const element of part.querySelectorAll("[data-member]")) {
    let text = answer[element.dataset.member] ?? "";
    if ("absolute" in element.dataset) text = location.origin + text;
    if (element.matches("input")) element.value = text;
    else element.textContent = text;
  }
  // A file that exists only in this answer becomes a download link.
  for (const link of part.querySelectorAll("[data-file]")) {
    const text = answer[link.dataset.file];
    link.hidden = !text;
    if (text) link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  }
  part.hidden = false;
  part.tabIndex = -1;
  part.focus();
}

async function send(form) {
  clearFaults(form);
  for (const field of form.querySelectorAll("[data-same-as]")) {
    field.setCustomValidity(field.value === form.elements[field.dataset.sameAs].value ? "" : field.dataset.fault);
  }
  if (!form.reportValidity()) return;
  const button = form.querySelector("button[type=submit]");
  const title = `${button.textContent.trim()} ${form.dataset.confirmTitle ?? ""}`.trim();
  if (form.dataset.confirm && !(await ask(title, form.dataset.confirm, button.textContent.trim()))) return;
  const hasBody = form.dataset.method !== "DELETE";
  button.disabled = true;
  form.setAttribute("aria-busy", "true");
  try {
    const answer = await callWithPassword(
      form.dataset.method, form.dataset.action, hasBody ? members(form) : undefined, title);
    const shown = form.dataset.showOf ? answer[form.dataset.showOf] : answer;
    if (form.dataset.show && shown) return showAnswer(document.querySelector(form.dataset.show), shown);
    if (!("entering" in form.dataset)) {
      sessionStorage.setItem("mss-notice", answer.code === "NOT_SEEN_YET" ? answer.detail : words.done);
    }
    if (form.dataset.next && form.dataset.next !== location.pathname) location.assign(form.dataset.next);
    else location.reload();
  } catch (problem) {
    if (problem.status === 401 && problem.code === "SIGNED_OUT") document.getElementById("lost").showModal();
    else if (problem.code === "STALE") showStale(problem);
    else if (problem.code !== "PASSWORD_NEEDED") showFault(form, problem);
  } finally {
    button.disabled = false;
    form.removeAttribute("aria-busy");
  }
}

/** After another operator's change: keeps the input, and shows a link to the new state. */
function showStale(problem) {
  say(`${problem.detail} `, "bad");
  const link = document.createElement("a");
  link.href = location.href;
  link.textContent = words.reload;
  notice.append(link);
}

for (const form of document.querySelectorAll("form[data-action]")) {
  form.noValidate = true;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(form);
  });
  form.addEventListener("input", () => showFields(form));
  form.addEventListener("change", () => showFields(form));
  for (const field of form.querySelectorAll("[data-same-as]")) {
    field.addEventListener("input", () => field.setCustomValidity(""));
  }
  showFields(form);
}

// An invitation is in the fragment of the address, which browsers do not send.
for (const field of document.querySelectorAll("[data-from-hash]")) {
  if (location.hash.length > 1) {
    field.value = location.hash.slice(1);
    history.replaceState(null, "", location.pathname);
  }
}

for (const button of document.querySelectorAll("dialog [data-close]")) {
  button.addEventListener("click", () => button.closest("dialog").close("no"));
}

document.addEventListener("click", (event) => {
  const name = event.target.dataset?.copy;
  if (!name) return;
  const part = event.target.closest("section, div").querySelector(`[data-member="${name}"]`);
  navigator.clipboard.writeText(part.textContent).then(() => say(words.copied, "good"), () => {});
});

// Menus close with a click outside of them, or with Escape.
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});

// ---- live figures ---------------------------------------------------------------------------------------------------

const live = document.querySelector("[data-live]");
if (live) {
  const source = new EventSource(live.dataset.live);
  source.addEventListener("figures", (event) => {
    // The HTML is safe: this console's templates escape every value.
    const open = [...live.querySelectorAll("details[open]")].map((one) => one.id);
    const focused = live.contains(document.activeElement) && document.activeElement.closest("details")?.id;
    live.innerHTML = JSON.parse(event.data);
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    if (focused) document.getElementById(focused)?.querySelector("summary").focus();
    finish(live);
    live.classList.remove("stale");
  });
  source.addEventListener("error", () => live.classList.add("stale"));
  addEventListener("pagehide", () => source.close());
}

// ---- operate: first a preview of the receivers, then the push -------------------------------------------------------

const push = document.querySelector("form[data-push]");
if (push) {
  const [dry, real] = [push.querySelector("[data-dry-run]"), push.querySelector("[data-real]")];
  const preview = document.getElementById("preview");
  const sent = document.getElementById("sent");
  let isReal = false;
  let reached = 0;
  let firstStage;
  real.addEventListener("click", () => { isReal = true; });
  dry.addEventListener("click", () => { isReal = false; });
  // The previewed push is the push that is sent, so a change needs another preview.
  push.addEventListener("input", () => {
    real.hidden = preview.hidden = sent.hidden = true;
    showFields(push);
  });
  showFields(push);
  const action = push.dataset;
  push.addEventListener("submit", async (event) => {
    event.preventDefault();
    clearFaults(push);
    if (!push.reportValidity()) return;
    const title = action.confirmTitle;
    const question = firstStage === undefined ? action.ask.replace("%", reached)
      : action.askStages.replace("%", firstStage);
    if (isReal && action.ask && !(await ask(title, question))) return;
    dry.disabled = real.disabled = true;
    try {
      const answer = await callWithPassword("POST", action.push, { ...members(push), dryRun: !isReal }, title);
      const part = isReal ? sent : preview;
      showAnswer(part, answer);
      if (isReal) {
        const [trace, rollout] = [part.querySelector("[data-trace]"), part.querySelector("[data-rollout]")];
        [trace.href, rollout.href] = [answer.trace ?? "", answer.rollout ?? ""];
        rollout.hidden = !answer.rollout;
        trace.hidden = !answer.trace;
        preview.hidden = real.hidden = true;
        // The next push needs another id.
        if (push.elements.thirdMsgId.required) push.elements.thirdMsgId.value = `console-${Date.now()}`;
        part.focus();
      } else {
        [reached, firstStage] = [answer.reached, answer.firstStage];
        part.querySelector("[data-first-stage]").hidden = firstStage === undefined;
        part.querySelector("[data-states]").replaceChildren(...answer.states.map((state) => {
          const item = document.createElement("li");
          item.textContent = `${state.devices} × ${state.detail}`;
          return item;
        }));
        real.hidden = answer.msg === "DUPLICATED_BIZ_ID";
        part.focus();
      }
    } catch (problem) {
      if (problem.code === "SIGNED_OUT") document.getElementById("lost").showModal();
      else if (problem.code !== "PASSWORD_NEEDED") showFault(push, problem);
    } finally {
      dry.disabled = real.disabled = false;
    }
  });
}
