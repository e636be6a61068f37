// Requests to the server, and what to do when it refuses one.

import { Store } from "../ui/store";
import { noticeAnswer, noticeLoss } from "./connection";
import { takeEarly } from "./early";

/** What the server said about a request that it did not fulfil. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
    readonly hint: string,
  ) {
    super(detail);
  }

  /** Whether asking again may help, because the server was not reached or had no room. */
  get isTransient(): boolean {
    return this.status === 0 || this.status >= 502;
  }
}

export interface AccessState {
  /** Whether the server asks for a token that it has not been shown. */
  isTokenNeeded: boolean;
}

/** Whether the server lets this page in. */
export const access = new Store<AccessState>({ isTokenNeeded: false });

const LOGIN_KEY = "bough-login";

export type Query = Record<string, string | number | boolean | undefined>;

export function address(path: string, query: Query = {}): string {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== "") {
      pairs.set(name, String(value));
    }
  }
  const text = pairs.toString();
  return text === "" ? path : `${path}?${text}`;
}

/** The path of a session, with more parts behind it. */
export function sessionPath(session: string, ...parts: string[]): string {
  return ["/v1/sessions", ...[session, ...parts].map(encodeURIComponent)].join("/");
}

export async function getJson<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  return request<T>("GET", address(path, query), undefined, signal);
}

export async function sendJson<T>(method: "POST" | "PUT" | "PATCH" | "DELETE", path: string, body?: unknown): Promise<T> {
  return request<T>(method, path, body);
}

/** Exchanges a token for a cookie that scripts cannot read. The token itself is kept nowhere. */
export async function logIn(token: string): Promise<void> {
  const headers = { authorization: `Bearer ${token}` };
  const response = await reach("/v1/login", { method: "POST", headers, credentials: "same-origin" });
  if (!response.ok) {
    throw await refusal(response);
  }
  localStorage.setItem(LOGIN_KEY, "yes");
  access.set({ isTokenNeeded: false });
}

/** Whether somebody logged in here. The cookie itself cannot be seen. */
export function hasLogin(): boolean {
  return localStorage.getItem(LOGIN_KEY) !== null;
}

export async function logOut(): Promise<void> {
  await sendJson("POST", "/v1/logout");
  localStorage.removeItem(LOGIN_KEY);
}

async function request<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const headers = new Headers({ accept: "application/json" });
  const options: RequestInit = { method, headers, credentials: "same-origin" };
  if (body !== undefined) {
    headers.set("content-type", "application/json");
    options.body = JSON.stringify(body);
  }
  if (signal !== undefined) {
    options.signal = signal;
  }
  const response = await reach(path, options);
  if (!response.ok) {
    throw await refusal(response);
  }
  return (response.status === 204 ? undefined : await response.json()) as T;
}

/** What proxies answer in the place of a server that is gone. */
const GATEWAY_STATUSES = [502, 504];

/** Sends a request; not reaching the server is an `ApiError` too. */
export async function reach(path: string, options: RequestInit): Promise<Response> {
  try {
    const early = options.method === undefined || options.method === "GET" ? takeEarly(path, options.signal) : undefined;
    const response = await (early ?? fetch(path, options));
    if (GATEWAY_STATUSES.includes(response.status)) {
      noticeLoss();
    } else if (response.ok) {
      noticeAnswer();
    }
    return response;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") {
      throw error;
    }
    noticeLoss();
    throw new ApiError(0, "console/unreachable", "The server does not answer.", "Start it with `bough serve`.");
  }
}

/** Reads why a request was refused. */
export async function refusal(response: Response): Promise<ApiError> {
  if (response.status === 401) {
    localStorage.removeItem(LOGIN_KEY);
    access.set({ isTokenNeeded: true });
  }
  const problem = (await response.json().catch(() => ({}))) as Record<string, unknown>;
  const text = (name: string, otherwise: string) => {
    const value = problem[name];
    return typeof value === "string" ? value : otherwise;
  };
  return new ApiError(response.status, text("code", "http/unknown"), text("detail", response.statusText), text("hint", ""));
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** Whether what was read before can stay in sight: the server is gone, and the page reads again when it is back. */
export function isTransient(error: unknown): boolean {
  return error instanceof ApiError && error.isTransient;
}

/** What to tell a person about an error. */
export function describe(error: unknown): string {
  if (error instanceof ApiError) {
    const detail = error.message.charAt(0).toUpperCase() + error.message.slice(1);
    return error.hint === "" ? detail : `${detail.replace(/\.?$/, ".")} ${error.hint}`;
  }
  return error instanceof Error ? error.message : String(error);
}
