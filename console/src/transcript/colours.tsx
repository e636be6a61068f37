// The colours of code. Knowing fifteen languages takes more bytes than the rest of a view, so this is loaded with the first code.

import type { ComponentChildren } from "preact";
import { createLowlight } from "lowlight";
import bash from "highlight.js/lib/languages/bash";
import cpp from "highlight.js/lib/languages/cpp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";

import "../core";
import { inert } from "../ui/inert";

const lowlight = createLowlight({ bash, cpp, css, diff, go, ini, java, javascript, json, python, rust, sql, typescript, xml, yaml });

interface CodeNode {
  type: string;
  value?: string;
  properties?: { className?: unknown };
  children?: CodeNode[];
}

/** Nothing where the language is not known. */
export function colour(text: string, language: string): ComponentChildren {
  return lowlight.registered(language) ? nodes(lowlight.highlight(language, text).children as CodeNode[]) : undefined;
}

function nodes(children: CodeNode[]): ComponentChildren {
  return children.map((node, at) => {
    if (node.type === "text") {
      return inert(node.value ?? "");
    }
    const names = node.properties?.className;
    return (
      <span key={at} class={Array.isArray(names) ? names.join(" ") : undefined}>
        {nodes(node.children ?? [])}
      </span>
    );
  });
}
