import { useId, useRef, useState } from "preact/hooks";
import { ApiError, describe, logIn } from "./api/client";
import { BrandMark } from "./top_bar";
import { WithCode } from "./ui/with_code";

/** Asks for a token when the server wants one. */
export function Login() {
  const [token, setToken] = useState("");
  const [problem, setProblem] = useState<string | undefined>(undefined);
  const [isSending, setSending] = useState(false);
  const inputId = useId();
  const problemId = useId();
  const input = useRef<HTMLInputElement>(null);
  const submit = async (event: Event) => {
    event.preventDefault();
    setSending(true);
    try {
      await logIn(token.trim());
    } catch (error) {
      setProblem(inWords(error));
      input.current?.select();
    }
    setSending(false);
  };
  return (
    <main class="login">
      <form class="form" onSubmit={(event) => void submit(event)}>
        <BrandMark />
        <h1>This server asks for a token</h1>
        <p>
          Make one where the server runs: <code>bough token create</code>
        </p>
        <label class="label" for={inputId}>
          Token
        </label>
        <input
          ref={input}
          id={inputId}
          aria-invalid={problem !== undefined}
          aria-describedby={problem === undefined ? undefined : problemId}
          class="input"
          type="password"
          autocomplete="current-password"
          value={token}
          autofocus
          onInput={(event) => setToken(event.currentTarget.value)}
        />
        {problem !== undefined && (
          <p id={problemId} class="bad" role="alert">
            <WithCode text={problem} />
          </p>
        )}
        <button type="submit" class="button button-main" disabled={isSending || token.trim() === ""}>
          Open
        </button>
      </form>
    </main>
  );
}

/** The server's own hint is for programs that send headers. */
function inWords(error: unknown): string {
  const isUnknown = error instanceof ApiError && error.status === 401;
  return isUnknown ? "The server does not know this token, or it has ended. Check that you copied all of it." : describe(error);
}
