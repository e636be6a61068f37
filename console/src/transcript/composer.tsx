import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";
import { Icon } from "../ui/icons";

interface ComposerProps {
  label: string;
  action: string;
  value?: string;
  /** What was typed changed; nothing is left of it when it was sent. */
  onText: (text: string) => void;
  /** Sends the text; says whether that went well. */
  onSend: (text: string) => Promise<boolean>;
  onCancel?: () => void;
  /** What is sent besides the text. */
  children?: ComponentChildren;
}

/** A field for a message. What was typed stays until it is stored. */
export function Composer({ label, action, value = "", onText, onSend, onCancel, children }: ComposerProps) {
  const [text, setText] = useState(value);
  const type = (next: string) => {
    setText(next);
    onText(next);
  };
  const [isSending, setSending] = useState(false);
  const inputId = useId();
  const canSend = text.trim() !== "" && !isSending;
  const send = async () => {
    if (!canSend) {
      return;
    }
    setSending(true);
    if (await onSend(text)) {
      type("");
    }
    setSending(false);
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      void send();
    } else if (event.key === "Escape" && onCancel !== undefined) {
      onCancel();
    }
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <label class="hidden" for={inputId}>
        {label}
      </label>
      <textarea
        id={inputId}
        class="input"
        rows={Math.min(12, Math.max(2, text.split("\n").length))}
        placeholder={label}
        value={text}
        readOnly={isSending}
        onInput={(event) => type(event.currentTarget.value)}
        onKeyDown={onKey}
        autofocus={onCancel !== undefined}
      />
      {children}
      <div class="composer-actions">
        <span class="muted composer-hint">{onCancel === undefined ? "Ctrl+Enter sends" : "Ctrl+Enter saves"}</span>
        {onCancel !== undefined && (
          <button type="button" class="button" onClick={onCancel}>
            Cancel
          </button>
        )}
        <button type="submit" class="button button-main" disabled={!canSend}>
          <Icon name="send" />
          {action}
        </button>
      </div>
    </form>
  );
}
