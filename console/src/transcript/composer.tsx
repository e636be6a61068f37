import { useId, useState } from "preact/hooks";
import { Icon } from "../ui/icons";

interface ComposerProps {
  label: string;
  action: string;
  value?: string;
  /** Sends the text; says whether that went well. */
  onSend: (text: string) => Promise<boolean>;
  onCancel?: () => void;
}

/** A field for a message. What was typed stays until it is stored. */
export function Composer({ label, action, value = "", onSend, onCancel }: ComposerProps) {
  const [text, setText] = useState(value);
  const [isSending, setSending] = useState(false);
  const inputId = useId();
  const canSend = text.trim() !== "" && !isSending;
  const send = async () => {
    if (!canSend) {
      return;
    }
    setSending(true);
    if (await onSend(text)) {
      setText("");
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
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={onKey}
        autofocus={onCancel !== undefined}
      />
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
