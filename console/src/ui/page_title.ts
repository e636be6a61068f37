import { useEffect } from "preact/hooks";
import { inert } from "./inert";

/** What the tab of the browser and its history say, while a view is shown. */
export function usePageTitle(text: string): void {
  useEffect(() => {
    document.title = `${inert(text)} – Bough`;
    return () => {
      document.title = "Bough";
    };
  }, [text]);
}
