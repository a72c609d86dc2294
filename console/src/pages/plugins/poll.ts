// State that changes by itself: asked for again every few seconds while the page is seen.
import { useEffect, useRef, useState } from 'preact/hooks'
import type { PluginInstance } from '../../api/types'
import { type Loaded, useRepeat } from '../../app/load'
import type { Sample } from './words'

// usePoll stops once asking again does not help: when the user may not read it, and when it
// is not there, after a while, as a plugin just enabled through another node soon is.
export function usePoll({ loading, reload, error }: Pick<Loaded<unknown>, 'loading' | 'reload' | 'error'>, ms = 3_000, on = true): void {
  const [ended, setEnded] = useState(false)
  const denied = error?.status === 403
  const missing = error?.status === 404
  useEffect(() => {
    setEnded(false)
    if (!missing) return
    const timer = setTimeout(() => setEnded(true), 30_000)
    return () => clearTimeout(timer)
  }, [missing])
  useRepeat(on && !denied && !ended, ms, { loading, reload })
}

const most = 200
const seen = new Map<string, { answer: PluginInstance; samples: Sample[] }>()

// useSamples keeps what was seen of the delivery of an instance, also when the page is left
// and comes back.
export function useSamples(p: PluginInstance | undefined): Sample[] {
  const none = useRef<Sample[]>([])
  if (!p?.delivery) return none.current
  const last = seen.get(p.name)
  if (last?.answer === p) return last.samples
  const sample = { at: Date.now(), delivered: p.delivery.delivered, lag: p.delivery.lag_records }
  const samples = [...(last?.samples ?? []).filter((s) => s.at < sample.at), sample].slice(-most)
  seen.set(p.name, { answer: p, samples })
  return samples
}
