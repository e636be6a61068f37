// A button that opens a list of actions.

import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Icon, type IconName } from "./icons";

export interface MenuItem {
  label: string;
  icon: IconName;
  onPick: () => void;
}

interface Place {
  top: number;
  right: number;
}

/** Room that an item takes, to open the list upwards where there is none below. */
const ITEM_HEIGHT = 40;

export function Menu({ label, items }: { label: string; items: MenuItem[] }) {
  const [place, setPlace] = useState<Place | undefined>(undefined);
  const button = useRef<HTMLButtonElement>(null);
  const listId = useId();
  const close = (isFocusKept: boolean) => {
    setPlace(undefined);
    if (isFocusKept) {
      button.current?.focus();
    }
  };
  const toggle = (event: MouseEvent) => {
    event.preventDefault();
    event.stopPropagation();
    setPlace(place === undefined ? placeBelow(button.current, items.length) : undefined);
  };
  return (
    <>
      <button
        ref={button}
        type="button"
        class="icon-button"
        aria-label={label}
        aria-haspopup="menu"
        aria-expanded={place !== undefined}
        aria-controls={place === undefined ? undefined : listId}
        onClick={toggle}
      >
        <Icon name="more" />
      </button>
      {place !== undefined && <MenuList id={listId} place={place} items={items} label={label} onClose={close} />}
    </>
  );
}

interface MenuListProps {
  id: string;
  label: string;
  place: Place;
  items: MenuItem[];
  onClose: (isFocusKept: boolean) => void;
}

function MenuList({ id, label, place, items, onClose }: MenuListProps) {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const buttons = () => [...(list.current?.querySelectorAll("button") ?? [])];
    buttons()[0]?.focus();
    const onPointer = (event: Event) => {
      if (!list.current?.contains(event.target as Node)) {
        onClose(false);
      }
    };
    const onScroll = () => onClose(false);
    document.addEventListener("pointerdown", onPointer, true);
    document.addEventListener("scroll", onScroll, true);
    return () => {
      document.removeEventListener("pointerdown", onPointer, true);
      document.removeEventListener("scroll", onScroll, true);
    };
  }, []);
  const onKey = (event: KeyboardEvent) => {
    const buttons = [...(list.current?.querySelectorAll("button") ?? [])];
    const at = buttons.findIndex((button) => button === document.activeElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    event.stopPropagation();
    if (event.key === "Escape" || event.key === "Tab") {
      event.preventDefault();
      onClose(true);
    } else if (step !== undefined) {
      event.preventDefault();
      buttons[(at + step + buttons.length) % buttons.length]?.focus();
    }
  };
  const pick = (event: MouseEvent, item: MenuItem) => {
    event.preventDefault();
    event.stopPropagation();
    onClose(true);
    item.onPick();
  };
  return (
    <div ref={list} id={id} class="menu" role="menu" aria-label={label} style={{ top: `${place.top}px`, right: `${place.right}px` }} onKeyDown={onKey}>
      {items.map((item) => (
        <button key={item.label} type="button" role="menuitem" class="menu-item" tabIndex={-1} onClick={(event) => pick(event, item)}>
          <Icon name={item.icon} />
          {item.label}
        </button>
      ))}
    </div>
  );
}

function placeBelow(button: HTMLElement | null, items: number): Place {
  const box = button?.getBoundingClientRect() ?? new DOMRect();
  const height = items * ITEM_HEIGHT;
  const isBelow = box.bottom + height < window.innerHeight;
  const top = isBelow ? box.bottom + 4 : Math.max(4, box.top - height - 12);
  return { top, right: Math.max(4, document.documentElement.clientWidth - box.right) };
}
