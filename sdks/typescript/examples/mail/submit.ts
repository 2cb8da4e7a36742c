// The submitter: it knows the contract, and nothing of the handlers.
import { Client, JobFailed } from "tickwheel";
import { indexDocument, sendEmail } from "./jobs.js";

const client = new Client();

const handle = await client.submit(sendEmail, { to: "a@example.com", subject: "Hi" });
const { messageId } = await handle.wait("1m");
console.log(`sent as ${messageId}`);

const later = await client.submit(sendEmail, { to: "a@nowhere.example", subject: "Hi" }, { delay: "200ms" });
try {
  await later.wait("1m");
} catch (error) {
  if (!(error instanceof JobFailed)) throw error;
  console.log(`failed with ${error.code}`);
}

const documents = ["one word", "two more words"].map((text, n) => indexDocument.new({ id: String(n), text }));
const results = await client.submitMany(documents);
for (const { handle: indexed, error } of results) {
  console.log(error ? error.message : await indexed.wait("1m"));
}
