// A share in percent. Text that is no number from 0 to 100 stays on the screen and is kept as
// NaN, or as the number that it is: problems refuses both.
export function isShare(n: number | null | undefined): boolean { return n === null || n === undefined || (n >= 0 && n <= 100) }

export const shareProblem = 'Enter a number from 0 to 100.'

interface Props { id?: string; label?: string; value: number; invalid?: boolean; onChange: (n: number) => void }

export function Percent({ id, label, value, invalid = false, onChange }: Props) {
  return <span class="percent"><input id={id} type="number" min={0} max={100} step="any" aria-label={label} aria-invalid={invalid || !isShare(value)} value={Number.isNaN(value) ? '' : value} onInput={(e) => onChange(e.currentTarget.valueAsNumber)} />%</span>
}
