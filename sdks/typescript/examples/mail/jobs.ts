// The contract: both sides import it.
import { jobType } from "tickwheel";
import { z } from "zod";

export const sendEmail = jobType("send_email", {
  payload: z.object({ to: z.email(), subject: z.string() }),
  result: z.object({ messageId: z.string() }),
  queue: "mail",
  maxRetries: 5,
  timeout: "30s",
});

export const indexDocument = jobType<{ id: string; text: string }, { words: number }>("index_document", {
  queue: "search",
});
