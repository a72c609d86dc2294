// The events of a stream as state of a page. Messages are collected and shown once per
// frame; nothing keeps more than the newest ones.
import { useEffect, useRef, useState } from 'preact/hooks'
import type { ApiError } from '../../api/client'
import { parse } from '../../api/json'
import type { Event } from '../../api/types'
import { follow, type Message } from './stream'
import { merge } from './words'

export const most = 200 // events that are shown

export interface Live {
  list: Event[]
  state: 'connecting' | 'live' | 'lost' | 'refused'
  error: ApiError | undefined
  waiting: number // arrived while paused
  skipped: { rate: number; slow: number; unread: number; costly: number }
  gap: boolean // the server could not say what was missed
}

const empty: Live = { list: [], state: 'connecting', error: undefined, waiting: 0, skipped: { rate: 0, slow: 0, unread: 0, costly: 0 }, gap: false }

// useLive follows url; earlier are the events that were there before.
export function useLive(url: string, paused: boolean, earlier: Event[] | undefined): Live {
  const [live, setLive] = useState<Live>(empty)
  const [round, setRound] = useState(0)
  const held = useRef<{ events: Event[]; count: number; frame: number; paused: boolean }>({ events: [], count: 0, frame: 0, paused })
  const show = () => {
    const h = held.current
    h.frame = 0
    if (h.paused) { setLive((l) => ({ ...l, waiting: h.count })); return }
    const added = h.events
    h.events = []
    h.count = 0
    setLive((l) => ({ ...l, list: merge(l.list, added, most), waiting: 0 }))
  }
  const soon = () => { const h = held.current; if (!h.frame) h.frame = requestAnimationFrame(show) }
  held.current.paused = paused
  useEffect(() => { soon() }, [paused])
  useEffect(() => {
    const h = held.current
    h.events = []
    h.count = 0
    setLive(empty)
    const take = (m: Message) => {
      const data = parse(m.data) as Record<string, unknown>
      if (m.name === 'event') {
        h.events.push(data as unknown as Event)
        h.count++
        if (h.events.length > 2 * most) h.events.splice(0, h.events.length - most)
        soon()
      } else if (m.name === 'skipped') {
        const reason = data.reason as keyof Live['skipped']
        setLive((l) => ({ ...l, skipped: { ...l.skipped, [reason]: l.skipped[reason] + Number(data.count) } }))
      } else if (m.name === 'reset') setLive((l) => ({ ...l, gap: true }))
    }
    const abort = new AbortController()
    void follow(url, {
      open: () => setLive((l) => ({ ...l, state: 'live', error: undefined })),
      message: take,
      lost: (error, again) => setLive((l) => ({ ...l, state: again ? 'lost' : 'refused', error })),
    }, abort.signal)
    return () => { abort.abort(); cancelAnimationFrame(h.frame); h.frame = 0 }
  }, [url, round])
  useEffect(() => { // after the bfcache
    const restore = (e: PageTransitionEvent) => { if (e.persisted) setRound((n) => n + 1) }
    addEventListener('pageshow', restore)
    return () => removeEventListener('pageshow', restore)
  }, [])
  return earlier ? { ...live, list: withEarlier(live.list, earlier) } : live
}

function withEarlier(list: Event[], earlier: Event[]): Event[] {
  return list.length >= most ? list : merge([...list, ...earlier], [], most)
}
