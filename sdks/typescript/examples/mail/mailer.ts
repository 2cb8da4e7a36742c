// What the handlers use. It stands for a mail service and a search engine.
export class BadAddress extends Error {}

export class App {
  readonly sent = new Map<string, string>();

  static async connect(): Promise<App> {
    return new App();
  }

  /** Sends a message. The same key twice is one message. */
  async send(email: { to: string; subject: string }, options: { key: string; signal: AbortSignal }): Promise<string> {
    options.signal.throwIfAborted();
    if (email.to.endsWith("@nowhere.example")) throw new BadAddress(`nobody reads mail at ${email.to}`);
    const messageId = this.sent.get(options.key) ?? `message-${this.sent.size + 1}`;
    this.sent.set(options.key, messageId);
    return messageId;
  }

  async index(document: { id: string; text: string }): Promise<{ words: number }> {
    if (document.text === "") throw new Error(`document ${document.id} is empty`);
    return { words: document.text.split(/\s+/).length };
  }

  async close(): Promise<void> {}
}
