/** A small chat page, with the AI SDK's own chat and transport. */

import { AbstractChat, type ChatState, type ChatStatus, DefaultChatTransport, type UIMessage } from "ai";

/** Shows messages whenever they change. */
class PageState implements ChatState<UIMessage> {
  error: Error | undefined;
  #status: ChatStatus = "ready";
  #messages: UIMessage[] = [];

  get status(): ChatStatus {
    return this.#status;
  }

  set status(status: ChatStatus) {
    this.#status = status;
    this.show();
  }

  get messages(): UIMessage[] {
    return this.#messages;
  }

  set messages(messages: UIMessage[]) {
    this.#messages = messages;
    this.show();
  }

  pushMessage = (message: UIMessage): void => void (this.messages = [...this.#messages, message]);
  popMessage = (): void => void (this.messages = this.#messages.slice(0, -1));
  replaceMessage = (index: number, message: UIMessage): void => void (this.messages = this.#messages.with(index, message));
  snapshot = <T>(thing: T): T => structuredClone(thing);

  show(): void {
    const rows = this.#messages.map((message) => {
      const row = document.createElement("li");
      row.className = message.role;
      row.textContent = message.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
      return row;
    });
    document.querySelector("ol")?.replaceChildren(...rows);
    document.body.dataset["status"] = this.#status;
  }
}

class PageChat extends AbstractChat<UIMessage> {}

const id = location.pathname.slice(1);
const state = new PageState();
const chat = new PageChat({ id, state, transport: new DefaultChatTransport() });
state.messages = (await (await fetch(`/api/chat/${id}`)).json()) as UIMessage[];
void chat.resumeStream();

document.querySelector("form")?.addEventListener("submit", (event) => {
  event.preventDefault();
  const input = document.querySelector("input");
  void chat.sendMessage({ text: input?.value ?? "" });
});
