import { useId, useState } from "preact/hooks";
import { ApiError, describe, logIn } from "./api/client";
import { WithCode } from "./ui/with_code";

/** Asks for a token when the server wants one. */
export function Login() {
  const [token, setToken] = useState("");
  const [problem, setProblem] = useState<string | undefined>(undefined);
  const [isSending, setSending] = useState(false);
  const inputId = useId();
  const submit = async (event: Event) => {
    event.preventDefault();
    setSending(true);
    try {
      await logIn(token.trim());
    } catch (error) {
      setProblem(inWords(error));
    }
    setSending(false);
  };
  return (
    <main class="login">
      <form class="form" onSubmit={(event) => void submit(event)}>
        <h1>This server asks for a token</h1>
        <p>
          Make one where the server runs: <code>bough token create</code>
        </p>
        <label class="label" for={inputId}>
          Token
        </label>
        <input
          id={inputId}
          class="input"
          type="password"
          autocomplete="current-password"
          value={token}
          autofocus
          onInput={(event) => setToken(event.currentTarget.value)}
        />
        {problem !== undefined && (
          <p class="bad" role="alert">
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
