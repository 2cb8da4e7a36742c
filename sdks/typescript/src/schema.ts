/**
 * The Standard Schema interface, version 1, which zod, valibot, arktype and others implement. Its authors intend it to
 * be copied rather than imported.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** The answer of a schema: a value, or what is wrong. */
export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

/** One thing that is wrong, and where. */
export interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The type that a schema reads. */
export type SchemaInput<S> = S extends StandardSchema ? NonNullable<S["~standard"]["types"]>["input"] : never;

/** The type that a schema returns. */
export type SchemaOutput<S> = S extends StandardSchema ? NonNullable<S["~standard"]["types"]>["output"] : never;

/** The value as the schema returns it, or a sentence that names every bad field. */
export async function validate<Output>(
  schema: StandardSchema<unknown, Output> | undefined,
  value: unknown,
): Promise<{ value: Output } | { problem: string }> {
  if (!schema) return { value: value as Output };
  const result = await schema["~standard"].validate(value);
  return result.issues ? { problem: result.issues.map(sentence).join("; ") } : { value: result.value };
}

function sentence(issue: SchemaIssue): string {
  const path = (issue.path ?? []).map((step) => String(typeof step === "object" ? step.key : step));
  return path.length > 0 ? `${path.join(".")}: ${issue.message}` : issue.message;
}
