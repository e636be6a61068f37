// The tree as a picture that can be moved and made larger or smaller. Only what is in sight is drawn.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Gestures } from "../ui/gestures";
import { inert } from "../ui/inert";
import { useSize } from "../ui/size";
import { endBelow, type TreeLayout, type TreeNode } from "./layout";

interface PictureProps {
  layout: TreeLayout;
  /** How many entries there are, those that are folded among them. */
  entries: number;
  labels: ReadonlyMap<string, string>;
  selected: TreeNode | undefined;
  onSelect: (node: TreeNode) => void;
  onOpen: (node: TreeNode) => void;
  /** Folds again what was unfolded. */
  onFold: (() => void) | undefined;
}

interface Camera {
  /** The place of the picture that is at the top left, in its own units. */
  x: number;
  y: number;
  scale: number;
}

/** Lanes are as wide as there is room for, between these two. */
const LANE_WIDTH_MIN = 252;
const LANE_WIDTH_MAX = 560;
/** Of a tree without branches, whose texts have the whole picture. */
const ONLY_LANE_WIDTH_MAX = 756;
/** What a lane has besides its text, and what a letter of the text takes. */
const LANE_PADDING = 46;
const LETTER_WIDTH = 6.8;
const ROW_HEIGHT = 30;
const MARGIN = 24;
/** The buttons at the foot of the picture take this much of it, in pixels of a page with letters of 16. */
const TOOLS_HEIGHT = 56;
/** Below this size the branches are drawn as lines. */
const SCALE_MIN = 0.08;
const SCALE_MAX = 3;
const SCALE_STEP = 1.3;
/** Below this size texts are not readable, and are left out. */
const TEXT_SCALE_MIN = 0.55;

export function TreePicture({ layout, entries, labels, selected, onSelect, onOpen, onFold }: PictureProps) {
  const box = useRef<HTMLDivElement>(null);
  const size = useSize(box, { width: 0, height: 0 });
  const [camera, setCamera] = useState<Camera>(() => ({ x: -MARGIN, y: -MARGIN, scale: letterScale() }));
  const gestures = useRef(new Gestures()).current;
  const laneWidth = laneWidthIn(size.width, layout.lanes);
  const placeOf = (node: TreeNode): Place => [node.lane * laneWidth, node.depth * ROW_HEIGHT];

  const zoom = (factor: number, at = { x: size.width / 2, y: size.height / 2 }) =>
    setCamera((now) => {
      // A tree that was made to fit may be smaller than that.
      const scale = Math.min(SCALE_MAX, Math.max(Math.min(SCALE_MIN, now.scale), now.scale * factor));
      return { scale, x: now.x + at.x / now.scale - at.x / scale, y: now.y + at.y / now.scale - at.y / scale };
    });
  const fit = () => {
    const height = size.height - TOOLS_HEIGHT * letterScale();
    const scale = Math.min(letterScale(), size.width / (layout.lanes * laneWidth + 2 * MARGIN), height / (layout.depth * ROW_HEIGHT + 2 * MARGIN));
    setCamera({ x: -MARGIN, y: -MARGIN, scale });
  };
  const bring = (node: TreeNode) => setCamera(({ scale }) => cameraOn(placeOf(node), [layout.lanes * laneWidth, layout.depth * ROW_HEIGHT], size, scale));
  const isMeasured = size.width > 0;
  useEffect(() => {
    if (isMeasured && selected !== undefined && !isInSight(placeOf(selected), laneWidth, camera, size)) {
      bring(selected);
    }
  }, [selected, isMeasured]);

  useEffect(() => {
    const element = box.current;
    const onWheel = (event: WheelEvent) => {
      event.preventDefault();
      const bounds = element?.getBoundingClientRect() ?? new DOMRect();
      if (event.ctrlKey || event.metaKey) {
        zoom(event.deltaY < 0 ? SCALE_STEP : 1 / SCALE_STEP, { x: event.clientX - bounds.left, y: event.clientY - bounds.top });
      } else {
        setCamera((now) => ({ ...now, x: now.x + event.deltaX / now.scale, y: now.y + event.deltaY / now.scale }));
      }
    };
    element?.addEventListener("wheel", onWheel, { passive: false });
    return () => element?.removeEventListener("wheel", onWheel);
  }, [size]);

  const onKey = (event: KeyboardEvent) => {
    const step = selected === undefined ? layout.nodes[0] : neighbour(layout, selected, event.key);
    if (event.key.startsWith("Arrow") && step !== undefined) {
      event.preventDefault();
      onSelect(step);
    } else if (event.key === "Enter" && selected !== undefined) {
      onOpen(selected);
    } else if (event.key === "+" || event.key === "-") {
      zoom(event.key === "+" ? SCALE_STEP : 1 / SCALE_STEP);
    }
  };
  const onPointerMove = (event: PointerEvent) =>
    gestures.move(event, {
      onMove: (dx, dy) => setCamera((now) => ({ ...now, x: now.x - dx / now.scale, y: now.y - dy / now.scale })),
      onPinch: (factor, at) => {
        const bounds = box.current?.getBoundingClientRect() ?? new DOMRect();
        zoom(factor, { x: at.x - bounds.left, y: at.y - bounds.top });
      },
    });
  const select = (node: TreeNode) => {
    if (!gestures.hasDragged) {
      onSelect(node);
    }
  };
  const isFar = camera.scale < SCALE_MIN;
  const inSight = isFar ? [] : nodesInSight(layout, laneWidth, camera, size);
  const chars = camera.scale < TEXT_SCALE_MIN ? 0 : Math.floor((laneWidth - LANE_PADDING) / LETTER_WIDTH);
  const view = `${camera.x} ${camera.y} ${size.width / camera.scale} ${size.height / camera.scale}`;
  return (
    <div
      ref={box}
      class="tree-box"
      tabIndex={0}
      role="group"
      aria-label={`Tree of ${entries} entries. Arrow keys move, Enter opens the entry, plus and minus change the size.`}
      onKeyDown={onKey}
      onPointerDown={(event) => gestures.down(event)}
      onPointerMove={onPointerMove}
      onPointerUp={(event) => gestures.up(event)}
      onPointerCancel={(event) => gestures.up(event)}
    >
      <svg class="tree-picture" viewBox={view} width={size.width} height={size.height} aria-hidden="true">
        {isFar && branchLines(layout).map(({ lane, from, to, isActive }) => <path key={`${lane}/${from}`} class={isActive ? "tree-edge tree-edge-active" : "tree-edge"} d={`M${lane * laneWidth} ${from * ROW_HEIGHT}V${to * ROW_HEIGHT}`} />)}
        {inSight.map((node) => node.parent !== undefined && <path key={node.entry.id} class={node.isActive ? "tree-edge tree-edge-active" : "tree-edge"} d={edge(placeOf(node.parent), placeOf(node))} />)}
        {inSight.map((node) => (
          <NodeView key={node.entry.id} node={node} place={placeOf(node)} width={laneWidth} label={labels.get(node.entry.id)} chars={chars} isSelected={node === selected} onSelect={select} onOpen={onOpen} />
        ))}
      </svg>
      <div class="tree-tools">
        <button type="button" class="button button-small" aria-label="Larger" onClick={() => zoom(SCALE_STEP)}>
          +
        </button>
        <button type="button" class="button button-small" aria-label="Smaller" onClick={() => zoom(1 / SCALE_STEP)}>
          −
        </button>
        <button type="button" class="button button-small" onClick={fit}>
          Fit
        </button>
        {onFold !== undefined && (
          <button type="button" class="button button-small" onClick={onFold}>
            Fold
          </button>
        )}
        <Legend />
      </div>
      <Minimap layout={layout} laneWidth={laneWidth} camera={camera} size={size} onMove={(x, y) => setCamera((now) => ({ ...now, x, y }))} />
    </div>
  );
}

const KINDS = [
  ["user", "user"],
  ["assistant", "assistant"],
  ["function_result", "result of a call"],
  ["failed", "failed"],
] as const;

/** What the dots stand for. */
function Legend() {
  return (
    <ul class="tree-legend" aria-hidden="true">
      {KINDS.map(([kind, name]) => (
        <li key={kind}>
          <svg class="tree-mark" viewBox="-7 -7 14 14">
            <circle class={`tree-dot tree-dot-${kind}`} r={5} />
            {kind === "failed" && <path class="tree-cross" d={crossAt(0, 0)} />}
          </svg>
          {name}
        </li>
      ))}
    </ul>
  );
}

interface NodeViewProps {
  node: TreeNode;
  place: Place;
  /** Of its lane. */
  width: number;
  label: string | undefined;
  /** How much of its text there is room for. */
  chars: number;
  isSelected: boolean;
  onSelect: (node: TreeNode) => void;
  onOpen: (node: TreeNode) => void;
}

function NodeView({ node, place: [x, y], width, label, chars, isSelected, onSelect, onOpen }: NodeViewProps) {
  const { entry } = node;
  // Letters of labels are bold, and the text keeps some room beside them.
  const named = label === undefined ? "" : cut(inert(label), Math.floor(chars * 0.6));
  const tool = cut(inert(entry.tool), Math.floor(chars * 0.4));
  const text = cut(inert(entry.preview), chars - Math.ceil(named.length * 1.15) - tool.length);
  return (
    <g class={node.isActive ? "tree-node tree-active" : "tree-node"} data-entry={entry.id} data-selected={isSelected || undefined} onClick={() => onSelect(node)} onDblClick={() => onOpen(node)}>
      <rect class="tree-target" x={x - 12} y={y - ROW_HEIGHT / 2} width={width - 16} height={ROW_HEIGHT} rx={6} />
      <circle class={`tree-dot tree-dot-${entry.hasFailed ? "failed" : entry.kind}`} cx={x} cy={y} r={entry.kind === "bookkeeping" ? 4 : 6} />
      {entry.hasFailed && <path class="tree-cross" d={crossAt(x, y)} />}
      {chars > 0 && (
        // Letters that are wider than most end at the edge of the lane.
        <svg x={x + 14} y={y - ROW_HEIGHT / 2} width={width - LANE_PADDING} height={ROW_HEIGHT}>
          <text y={ROW_HEIGHT / 2 + 4}>
            {named !== "" && <tspan class="tree-label">{`${named} `}</tspan>}
            {tool !== "" && <tspan class="tree-tool">{`${tool} `}</tspan>}
            {text}
          </text>
        </svg>
      )}
    </g>
  );
}

/** A shape besides the colour. */
function crossAt(x: number, y: number): string {
  return `M${x - 2.5} ${y - 2.5}l5 5m0 -5l-5 5`;
}

function cut(text: string, chars: number): string {
  return text.length > chars ? `${text.slice(0, Math.max(0, chars - 1))}…` : text;
}

interface MinimapProps {
  layout: TreeLayout;
  laneWidth: number;
  camera: Camera;
  size: { width: number; height: number };
  onMove: (x: number, y: number) => void;
}

/** In its own units; `tree.css` says how large it is drawn. */
const MAP_WIDTH = 120;
const MAP_HEIGHT = 150;
/** What is smaller on the map than this could not be seen. */
const MAP_LENGTH_MIN = 3;

/** The whole tree, with a frame around what is in sight. */
function Minimap({ layout, laneWidth, camera, size, onMove }: MinimapProps) {
  const lines = useMemo(() => branchLines(layout), [layout]);
  const scaleX = MAP_WIDTH / Math.max(1, layout.lanes);
  const scaleY = MAP_HEIGHT / Math.max(1, layout.depth);
  const move = (event: MouseEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const lane = ((event.clientX - box.left) / box.width) * Math.max(1, layout.lanes);
    const depth = ((event.clientY - box.top) / box.height) * Math.max(1, layout.depth);
    onMove(lane * laneWidth - size.width / camera.scale / 2, depth * ROW_HEIGHT - size.height / camera.scale / 2);
  };
  return (
    <svg class="tree-map" viewBox={`0 0 ${MAP_WIDTH} ${MAP_HEIGHT}`} aria-hidden="true" onClick={move} onPointerDown={(event) => event.stopPropagation()}>
      {lines.map(({ lane, from, to, isActive }) => (
        <path key={`${lane}/${from}`} class={isActive ? "tree-active" : ""} d={`M${(lane + 0.5) * scaleX} ${from * scaleY}v${Math.max(MAP_LENGTH_MIN, (to + 1 - from) * scaleY)}`} />
      ))}
      <rect
        x={((camera.x + MARGIN) / laneWidth) * scaleX}
        y={((camera.y + MARGIN) / ROW_HEIGHT) * scaleY}
        width={Math.max(MAP_LENGTH_MIN, (size.width / camera.scale / laneWidth) * scaleX)}
        height={Math.max(MAP_LENGTH_MIN, (size.height / camera.scale / ROW_HEIGHT) * scaleY)}
      />
    </svg>
  );
}

function branchLines(layout: TreeLayout) {
  const starts = layout.nodes.filter((node) => node.parent === undefined || node.parent.lane !== node.lane);
  return starts.map((node) => ({ lane: node.lane, from: node.depth, to: endBelow(node).depth, isActive: node.isActive }));
}

type Place = [x: number, y: number];

/** The lanes share the picture, as long as texts stay readable and lines short. */
function laneWidthIn(width: number, lanes: number): number {
  const share = (width / letterScale() - 2 * MARGIN) / Math.max(1, lanes);
  return Math.max(LANE_WIDTH_MIN, Math.min(share, lanes === 1 ? ONLY_LANE_WIDTH_MAX : LANE_WIDTH_MAX));
}

/** A line down the lane, or between the rows to another lane, so that it crosses no text. */
function edge([fromX, fromY]: Place, [toX, toY]: Place): string {
  if (fromX === toX) {
    return `M${fromX} ${fromY}V${toY}`;
  }
  const between = toY - ROW_HEIGHT / 2;
  const bend = Math.sign(toX - fromX) * 8;
  return `M${fromX} ${fromY}V${between - 8}Q${fromX} ${between} ${fromX + bend} ${between}H${toX - bend}Q${toX} ${between} ${toX} ${between + 8}V${toY}`;
}

/** The nodes are in the order of their depth, so that those in sight stand together. */
function nodesInSight(layout: TreeLayout, laneWidth: number, camera: Camera, size: { width: number; height: number }): TreeNode[] {
  const top = camera.y / ROW_HEIGHT - 1;
  const bottom = (camera.y + size.height / camera.scale) / ROW_HEIGHT + 2;
  const left = camera.x / laneWidth - 1;
  const right = (camera.x + size.width / camera.scale) / laneWidth + 1;
  let [low, high] = [0, layout.nodes.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((layout.nodes[middle]?.depth ?? 0) < top) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const found: TreeNode[] = [];
  for (let at = low; at < layout.nodes.length; at += 1) {
    const node = layout.nodes[at];
    if (node === undefined || node.depth > bottom) {
      break;
    }
    if (node.lane >= left && node.lane <= right) {
      found.push(node);
    }
  }
  return found;
}

/** Letters of the picture are as large as those of the page. */
function letterScale(): number {
  return Number.parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
}

/** The camera with a node in sight, and with as little emptiness around the tree as can be. */
function cameraOn([x, y]: Place, [wholeWidth, wholeHeight]: Place, size: { width: number; height: number }, scale: number): Camera {
  const along = (at: number, room: number, whole: number) => Math.max(-MARGIN, Math.min(at, whole + MARGIN - room));
  const [width, height] = [size.width / scale, (size.height - TOOLS_HEIGHT * letterScale()) / scale];
  return { scale, x: along(x - width / 3, width, wholeWidth), y: along(y - height / 2, height, wholeHeight) };
}

function isInSight([x, y]: Place, laneWidth: number, camera: Camera, size: { width: number; height: number }): boolean {
  const isAcross = x >= camera.x && x <= camera.x + size.width / camera.scale - laneWidth / 2;
  return isAcross && y >= camera.y && y <= camera.y + (size.height - TOOLS_HEIGHT * letterScale()) / camera.scale;
}

/** Where an arrow key leads. */
function neighbour(layout: TreeLayout, node: TreeNode, key: string): TreeNode | undefined {
  switch (key) {
    case "ArrowUp":
      return node.parent;
    case "ArrowDown":
      return node.children.find((child) => child.lane === node.lane) ?? node.children[0];
    case "ArrowLeft":
    case "ArrowRight": {
      const row = layout.nodes.filter((other) => other.depth === node.depth).sort((a, b) => a.lane - b.lane);
      return row[row.indexOf(node) + (key === "ArrowLeft" ? -1 : 1)];
    }
    default:
      return undefined;
  }
}
