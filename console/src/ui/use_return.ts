import { useEffect } from "preact/hooks";
import { connection, isAnswering, noticeLoss } from "../api/connection";

const WATCH_MS = 5_000;

/** For views without a stream: looks now and then whether the server is there, and does something each time that it is back. */
export function useReturn(onReturn: () => void): void {
  useEffect(() => {
    const timer = window.setInterval(async () => {
      if (!document.hidden && connection.get() !== "lost" && !(await isAnswering())) {
        noticeLoss();
      }
    }, WATCH_MS);
    return () => window.clearInterval(timer);
  }, []);
  useEffect(() => {
    let before = connection.get();
    return connection.subscribe(() => {
      const now = connection.get();
      if (before === "lost" && now === "live") {
        onReturn();
      }
      before = now;
    });
  });
}
