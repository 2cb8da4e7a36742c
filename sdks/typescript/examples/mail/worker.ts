// The worker: `node worker.js` runs until SIGTERM.
import { pathToFileURL } from "node:url";
import { RetryAfter } from "tickwheel";
import { Worker } from "tickwheel/worker";
import { indexDocument, sendEmail } from "./jobs.js";
import { App, BadAddress } from "./mailer.js";

export const worker = new Worker({
  name: "mailer",
  queues: ["mail", "search"],
  capacity: 20,
  state: () => App.connect(),
  dispose: (app) => app.close(),
});

worker.handle(
  sendEmail,
  async (email, ctx) => {
    ctx.progress(10, "rendering");
    ctx.log.info("sending", { subject: email.subject });
    if (ctx.timeLeft < 5_000) throw new RetryAfter("1m", "too little time left");
    await ctx.heartbeat();
    const messageId = await ctx.once("smtp", (key) => ctx.state.send(email, { key, signal: ctx.signal }));
    return { messageId };
  },
  { notRetryable: [BadAddress] },
);

worker.handleBatch(indexDocument, { jobsMax: 100, waitMax: "50ms" }, (documents, ctx) =>
  Promise.allSettled(documents.map((document) => ctx.state.index(document))),
);

worker.use(async (ctx, next) => {
  const began = performance.now();
  try {
    return await next();
  } finally {
    ctx.log.debug("took", { ms: Math.round(performance.now() - began) });
  }
});

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await worker.run();
