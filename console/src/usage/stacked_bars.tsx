// A bar for each day, stacked by series.

import { useRef } from "preact/hooks";
import { shortDate } from "../ui/format";
import { inert } from "../ui/inert";
import { useSize } from "../ui/size";
import { type ChartData, scale } from "./chart";

interface StackedBarsProps {
  data: ChartData;
  /** What is drawn and in which unit. */
  title: string;
  format: (value: number) => string;
}

/** In pixels of a page with letters of 16; the picture is drawn as wide as there is room, so that letters keep their size. */
const HEIGHT = 260;
const LEFT = 56;
const BOTTOM = 28;
const TOP = 10;
const DAY_LABEL_WIDTH = 76;

export function StackedBars({ data, title, format }: StackedBarsProps) {
  const box = useRef<HTMLDivElement>(null);
  const size = useSize(box, { width: 800, height: HEIGHT });
  const rem = Number.parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
  const width = Math.max(200, size.width / rem);
  const ticks = scale(data.most);
  const top = ticks.at(-1) ?? 1;
  const y = (value: number) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top);
  const step = (width - LEFT) / Math.max(1, data.days.length);
  const every = Math.max(1, Math.ceil(DAY_LABEL_WIDTH / step));
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      <div ref={box}>
        <svg viewBox={`0 0 ${width} ${HEIGHT}`} role="img" aria-label={`${title}. The table below has the sums.`}>
          {ticks.map((tick) => (
            <g key={tick}>
              <line class={tick === 0 ? "chart-grid chart-zero" : "chart-grid"} x1={LEFT} x2={width} y1={y(tick)} y2={y(tick)} />
              <text class="chart-text" x={LEFT - 8} y={y(tick) + 4} text-anchor="end">
                {format(tick)}
              </text>
            </g>
          ))}
          {data.days.map((day, index) => (
            <g key={day}>
              <Bar data={data} index={index} x={LEFT + index * step} step={step} y={y} format={format} />
              {(data.days.length - 1 - index) % every === 0 && (
                <text class="chart-text" x={Math.min(LEFT + (index + 0.5) * step, width - DAY_LABEL_WIDTH / 3)} y={HEIGHT - 8} text-anchor="middle">
                  {shortDate(day)}
                </text>
              )}
            </g>
          ))}
        </svg>
      </div>
      <ul class="legend">
        {data.series.map((one, index) => (
          <li key={one.name}>
            <span class={`legend-mark series-${index}`} />
            <bdi>{inert(one.name)}</bdi>
          </li>
        ))}
      </ul>
    </figure>
  );
}

interface BarProps {
  data: ChartData;
  index: number;
  x: number;
  step: number;
  y: (value: number) => number;
  format: (value: number) => string;
}

const BAR_WIDTH_MAX = 40;

function Bar({ data, index, x, step, y, format }: BarProps) {
  const width = Math.min(step * 0.7, BAR_WIDTH_MAX);
  let below = 0;
  return (
    <>
      {data.series.map((one, number) => {
        const value = one.values[index] ?? 0;
        const from = below;
        below += value;
        return (
          value > 0 && (
            <rect key={one.name} class={`series-${number}`} x={x + (step - width) / 2} width={width} y={y(below)} height={y(from) - y(below)}>
              <title>{inert(`${data.days[index]}, ${one.name}: ${format(value)}`)}</title>
            </rect>
          )
        );
      })}
    </>
  );
}
