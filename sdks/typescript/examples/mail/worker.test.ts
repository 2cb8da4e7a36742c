// A test of the handlers, without a server.
import assert from "node:assert/strict";
import { test } from "node:test";
import { run } from "tickwheel/testing";
import { sendEmail } from "./jobs.js";
import { App } from "./mailer.js";
import { worker } from "./worker.js";

test("a message is sent once", async () => {
  const app = new App();
  const outcome = await run(worker, sendEmail, { to: "a@example.com", subject: "Hi" }, { state: app });
  assert.deepEqual(outcome.result, { messageId: "message-1" });
  assert.equal(app.sent.size, 1);
});

test("a bad address is not tried again", async () => {
  const app = new App();
  const options = { state: app, attempt: 2 };
  const outcome = await run(worker, sendEmail, { to: "a@nowhere.example", subject: "Hi" }, options);
  assert.deepEqual([outcome.status, outcome.retryable, outcome.error?.code], ["failed", false, "bad_address"]);
});
