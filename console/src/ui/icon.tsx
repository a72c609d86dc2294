// Icons are strokes of our own on a grid of 16 by 16.
const strokes = {
  flag: 'M4 14.5V2M4 3h8.5l-2 3 2 3H4',
  live: 'M8 9.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3M4.8 11.2a4.5 4.5 0 0 1 0-6.4M11.2 4.8a4.5 4.5 0 0 1 0 6.4M2.7 13.3a7.5 7.5 0 0 1 0-10.6M13.3 2.7a7.5 7.5 0 0 1 0 10.6',
  why: 'M6 6.2a2.1 2.1 0 1 1 3 1.9c-.7.4-1 .8-1 1.6M8 12.1v.1M8 14.5a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13',
  search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9M10.4 10.4 14 14',
  plus: 'M8 3v10M3 8h10',
  close: 'M4 4l8 8M12 4l-8 8',
  check: 'M3 8.5 6.5 12 13 4.5',
  alert: 'M8 5.5v3.2M8 11.1v.1M8 2 1.8 13.3h12.4z',
  down: 'M4 6l4 4 4-4',
  right: 'M6 4l4 4-4 4',
  trash: 'M3 4.5h10M6.5 4.5V3h3v1.5M4.5 4.5 5 13.5h6l.5-9',
  copy: 'M6 6h7.5v7.5H6zM10 6V2.5H2.5V10H6',
  sun: 'M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6M8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1',
  moon: 'M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7z',
  pulse: 'M1.5 8.5h3l2-5 3 9 2-4h3',
  system: 'M2 3h12v8H2zM6 14h4M8 11v3',
  menu: 'M2 4h12M2 8h12M2 12h12',
  out: 'M6 2.5H3v11h3M7 8h7M11 5l3 3-3 3',
  users: 'M6 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5M1.5 13.5c0-2.5 2-4 4.5-4s4.5 1.5 4.5 4M11 3.2a2.5 2.5 0 0 1 0 4.6M12 9.8c1.5.5 2.5 1.8 2.5 3.7',
  clock: 'M8 4.5V8l2.5 1.5M8 14.5a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13',
  back: 'M10 3 5 8l5 5',
  project: 'M2 4h4l1.5 1.5H14V13H2z',
  power: 'M8 2v6M4.5 4.2a5 5 0 1 0 7 0',
  plug: 'M5.5 1.5v3M10.5 1.5v3M3.5 4.5h9v3a4.5 4.5 0 0 1-9 0zM8 12v2.5',
  pause: 'M5.5 3v10M10.5 3v10',
  play: 'M5 3l8 5-8 5z',
  restart: 'M13 3v3.5H9.5M12.8 6.3A5.3 5.3 0 1 0 13.3 9',
  gear: 'M2 4.5h5M11 4.5h3M9 6.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4M2 11.5h3M9 11.5h5M7 13.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4',
  bolt: 'M9 1.5 3.5 9H8l-1 5.5L12.5 7H8z',
  up: 'M4 10l4-4 4 4',
  table: 'M2 3h12v10H2zM2 6.5h12M2 10h12M6.5 6.5V13',
  letter: 'M2 4h12v9H2zM2 4.5l6 4.5 6-4.5',
} as const
export type IconName = keyof typeof strokes

export function Icon({ name }: { name: IconName }) {
  return <svg class="icon" viewBox="0 0 16 16" width="16" height="16" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><path d={strokes[name]} /></svg>
}
