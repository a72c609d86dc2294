package persons_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/sdk"
)

// site makes events as a web site sends them, of people that come and go: most
// are page views of known persons, some are first visits, some log in.
type site struct {
	rnd    *rand.Rand
	people int
	n      int
}

func (g *site) event() *sdk.Event {
	g.n++
	who := fmt.Sprintf("0190-anon-%d", g.rnd.IntN(g.people))
	e := &sdk.Event{
		UUID: uuid.NewString(), ProjectID: 1, Name: "$pageview", DistinctID: who,
		Timestamp: start.Add(time.Duration(g.n) * time.Millisecond), ReceivedAt: start,
	}
	extra := ""
	switch roll := g.rnd.IntN(100); {
	case roll < 2:
		e.Name, extra = "$identify", fmt.Sprintf(`,"$anon_distinct_id":"%s","$set":{"email":"%s@example.com"}`, who, who)
		e.DistinctID = "user-" + who
	case roll < 7:
		e.Name, extra = "$set", fmt.Sprintf(`,"$set":{"plan":"pro","visits":%d}`, g.n)
	case roll < 10:
		extra = fmt.Sprintf(`,"$groups":{"company":"c%d"}`, g.rnd.IntN(1000))
	case roll < 11:
		e.Name, extra = "$groupidentify", fmt.Sprintf(`,"$group_type":"company","$group_key":"c%d","$group_set":{"seats":%d}`,
			g.rnd.IntN(1000), g.n)
	}
	e.Properties = json.RawMessage(fmt.Sprintf(`{"$current_url":"https://app.example.com/p/%d","$host":"app.example.com",`+
		`"$pathname":"/p/%d","$browser":"Chrome","$browser_version":120,"$os":"Mac OS X","$os_version":"10.15.7",`+
		`"$device_type":"Desktop","$lib":"web","$lib_version":"1.96.1","$screen_height":1080,"$screen_width":1920,`+
		`"$viewport_height":900,"$viewport_width":1600,"$referrer":"$direct","$referring_domain":"$direct",`+
		`"$raw_user_agent":"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)","amount":%d%s}`, g.n, g.n, g.rnd.IntN(1000), extra))
	return e
}

func (g *site) batch(n int) []*sdk.Event {
	out := make([]*sdk.Event, n)
	for i := range out {
		out[i] = g.event()
	}
	return out
}

// cpu is the processor time this process has used.
func cpu() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkStage is one transaction of 1,000 events an operation.
func BenchmarkStage(b *testing.B) {
	const size = 1000
	for _, people := range []int{1_000, 100_000} {
		onBoth(b, fmt.Sprintf("%d people", people), func(b *testing.B, d *db.DB) {
			s, g := service(b, d), &site{rnd: rand.New(rand.NewPCG(1, 2)), people: people}
			for range 20 {
				process(b, s, g.batch(size))
			}
			var spent time.Duration
			for b.Loop() {
				b.StopTimer()
				batch := g.batch(size)
				before := cpu()
				b.StartTimer()
				if _, err := s.Process(context.Background(), batch); err != nil {
					b.Fatal(err)
				}
				spent += cpu() - before
			}
			events := float64(b.N * size)
			b.ReportMetric(events/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(float64(spent.Nanoseconds())/events, "cpu-ns/event")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func onBoth(b *testing.B, name string, fn func(b *testing.B, d *db.DB)) {
	b.Run(name+"/sqlite", func(b *testing.B) { fn(b, dbtest.SQLite(b)) })
	b.Run(name+"/postgres", func(b *testing.B) { fn(b, dbtest.Postgres(b)) })
}

func BenchmarkProperties(b *testing.B) {
	const people = 10_000
	onBoth(b, "read", func(b *testing.B, d *db.DB) {
		s := service(b, d)
		var ids []string
		for n := 0; n < people; n += 1000 {
			var batch []*sdk.Event
			for i := range 1000 {
				id := fmt.Sprintf("u%d", n+i)
				ids = append(ids, id)
				batch = append(batch, ev(`$set `+id+` {"$set":{"email":"someone@example.com","plan":"pro","n":1,"$browser":"Chrome"}}`))
			}
			process(b, s, batch)
		}
		read := func(b *testing.B, id string) {
			if _, ok, err := s.Properties(context.Background(), 1, id); err != nil || !ok {
				b.Fatal(id, ok, err)
			}
		}
		b.Run("hit", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				read(b, ids[0])
			}
		})
		b.Run("miss", func(b *testing.B) {
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if n%people == 0 {
					b.StopTimer()
					s = service(b, d)
					read(b, ids[people-1])
					b.StartTimer()
				}
				read(b, ids[n%(people-1)])
			}
		})
	})
}
