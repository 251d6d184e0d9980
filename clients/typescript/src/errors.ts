/** One field of a request that is wrong. */
export interface FieldError {
  path?: string;
  message?: string;
}

/** An answer of the daemon that is an error: its problem document. */
export class SessiondError extends Error {
  override name = "SessiondError";
  /** HTTP status; 0: there was no answer. */
  readonly status: number;
  /** Like not_found, conflict, invalid; unreachable: there was no answer. */
  readonly code: string;
  /** Fields that are wrong. */
  readonly errors: FieldError[];
  /** The whole document, which has more on a conflict, as the head. */
  readonly problem: Record<string, unknown>;

  constructor(request: string, status: number, problem: Record<string, unknown>, cause?: unknown) {
    const detail = String(problem.detail ?? problem.title ?? `status ${status}`);
    super(`${request}: ${detail}`, cause === undefined ? undefined : { cause });
    this.status = status;
    this.code = String(problem.code ?? "");
    this.errors = Array.isArray(problem.errors) ? (problem.errors as FieldError[]) : [];
    this.problem = problem;
  }
}

/** No daemon answered, after all retries. */
export class DaemonAway extends SessiondError {
  override name = "DaemonAway";

  constructor(request: string, where: string, attempts: number, cause: unknown) {
    const said = reasonOf(cause);
    const detail =
      `no sessiond answers at ${where} (${said}; ${attempts} attempts): start it with "sessiond serve", or name its ` +
      "address and token";
    super(request, 0, { code: "unreachable", detail }, cause);
  }
}

function reasonOf(cause: unknown): string {
  const e = cause as { code?: string; message?: string; cause?: unknown } | undefined;
  return e?.code?.toString() ?? (e?.cause ? reasonOf(e.cause) : (e?.message ?? "no reason"));
}
