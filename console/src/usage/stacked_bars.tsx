// A bar for each day, stacked by series.

import { shortDate } from "../ui/format";
import { inert } from "../ui/inert";
import { type ChartData, scale } from "./chart";

interface StackedBarsProps {
  data: ChartData;
  /** What is drawn and in which unit. */
  title: string;
  format: (value: number) => string;
}

const WIDTH = 800;
const HEIGHT = 260;
const LEFT = 64;
const BOTTOM = 26;
const TOP = 18;
/** Of a day, in the largest letters that it may have. */
const LABEL_WIDTH = 80;
const DAY_LABELS = 6;

export function StackedBars({ data, title, format }: StackedBarsProps) {
  const ticks = scale(data.most);
  const top = ticks.at(-1) ?? 1;
  const height = HEIGHT - TOP - BOTTOM;
  const y = (value: number) => TOP + height * (1 - value / top);
  const step = (WIDTH - LEFT) / Math.max(1, data.days.length);
  const every = Math.max(1, Math.ceil(data.days.length / DAY_LABELS));
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`${title}. The table below has the sums.`}>
        {ticks.map((tick) => (
          <g key={tick}>
            <line class="chart-grid" x1={LEFT} x2={WIDTH} y1={y(tick)} y2={y(tick)} />
            <text class="chart-text" x={LEFT - 8} y={y(tick) + 4} text-anchor="end">
              {format(tick)}
            </text>
          </g>
        ))}
        {data.days.map((day, index) => (
          <g key={day}>
            <Bar data={data} index={index} x={LEFT + index * step} step={step} y={y} format={format} />
            {index % every === 0 && (
              <text class="chart-text" x={Math.min(LEFT + (index + 0.5) * step, WIDTH - LABEL_WIDTH / 2)} y={HEIGHT - 6} text-anchor="middle">
                {shortDate(day)}
              </text>
            )}
          </g>
        ))}
      </svg>
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
