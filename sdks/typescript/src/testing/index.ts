/** `tickwheel/testing`: handlers without a server, clients without one, and a real server for the rest. */

export { RecordingClient, type SubmittedJob } from "./recording-client.js";
export { type Outcome, type RunOptions, run } from "./run.js";
export { Server, type ServerOptions } from "./server.js";
