// Modal dialogs. The browser's own element keeps the focus inside and closes it with Escape.

import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Icon } from "./icons";

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
}

export function Dialog({ title, onClose, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  // Before the next key comes: what is typed at once belongs to the dialog, and not to the shortcuts of the view.
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  const onBackdrop = (event: MouseEvent) => {
    if (event.target === element.current) {
      onClose();
    }
  };
  return (
    <dialog ref={element} class="dialog" aria-labelledby={titleId} onClose={onClose} onClick={onBackdrop}>
      <div class="dialog-body">
        <header class="dialog-head">
          <h2 id={titleId}>{title}</h2>
          <button type="button" class="icon-button" aria-label="Close" onClick={onClose}>
            <Icon name="close" />
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}

interface PromptProps {
  title: string;
  label: string;
  value: string;
  action: string;
  /** Whether an empty text is an answer. */
  allowsEmpty?: boolean;
  onAnswer: (text: string) => void;
  onClose: () => void;
}

/** Asks for one line of text. */
export function Prompt({ title, label, value, action, allowsEmpty = false, onAnswer, onClose }: PromptProps) {
  const [text, setText] = useState(value);
  const inputId = useId();
  const isAnswer = allowsEmpty || text.trim() !== "";
  const submit = (event: Event) => {
    event.preventDefault();
    if (isAnswer) {
      onAnswer(text.trim());
      onClose();
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="form" onSubmit={submit}>
        <label class="label" for={inputId}>
          {label}
        </label>
        <input id={inputId} class="input" value={text} autofocus onFocus={(event) => event.currentTarget.select()} onInput={(event) => setText(event.currentTarget.value)} />
        <div class="form-actions">
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="button button-main" disabled={!isAnswer}>
            {action}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
