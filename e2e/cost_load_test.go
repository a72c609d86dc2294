//go:build e2e

package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// costPeople is the number of persons that the events are of.
const costPeople = 10_000

// costLoad is what clients send.
type costLoad struct {
	batch       int // events of a request
	connections int
	events      int
	rate        int  // requests a second; 0: as many as are answered
	everyone    bool // each event is of the next person; otherwise of any
}

// send sends the events over connections that are divided among the nodes. It returns how
// long each request took, sorted. With a rate the time is from when the request was due.
func (c *costCluster) send(t *testing.T, l costLoad) []time.Duration {
	t.Helper()
	var next atomic.Int64
	took := make([][]time.Duration, l.connections)
	begin := time.Now()
	var clients sync.WaitGroup
	for i := range l.connections {
		n, rnd := c.nodes[i%len(c.nodes)], rand.New(rand.NewPCG(uint64(i), uint64(begin.UnixNano())))
		clients.Go(func() {
			client := &fasthttp.Client{MaxConnsPerHost: 1}
			req, res := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
			req.SetRequestURI(n.url + "/batch/")
			req.Header.SetMethod(http.MethodPost)
			var body []byte
			for {
				number := int(next.Add(1)) - 1
				if number*l.batch >= l.events {
					return
				}
				body = l.appendRequest(body[:0], n.project, number, rnd)
				req.SetBodyRaw(body)
				due := time.Now()
				if l.rate > 0 {
					due = begin.Add(time.Duration(number) * time.Second / time.Duration(l.rate))
					time.Sleep(time.Until(due))
				}
				if err := client.Do(req, res); err != nil || res.StatusCode() != http.StatusOK {
					t.Errorf("%v %d %s", err, res.StatusCode(), res.Body())
					return
				}
				took[i] = append(took[i], time.Since(due))
			}
		})
	}
	clients.Wait()
	if t.Failed() {
		t.FailNow()
	}
	c.accepted += l.events
	all := slices.Concat(took...)
	slices.Sort(all)
	return all
}

// appendRequest appends the body of a request.
func (l costLoad) appendRequest(to []byte, project string, number int, rnd *rand.Rand) []byte {
	to = fmt.Appendf(to, `{"api_key":%q,"batch":[`, project)
	for i := range l.batch {
		person := rnd.IntN(costPeople)
		if l.everyone {
			person = (number*l.batch + i) % costPeople
		}
		to = append(appendCostEvent(to, person, rnd), ',')
	}
	return append(to[:len(to)-1], "]}"...)
}

// appendCostEvent appends an event of about 550 bytes. One in ten changes its person.
func appendCostEvent(to []byte, person int, rnd *rand.Rand) []byte {
	to = append(to, `{"event":"paid","distinct_id":"user-`...)
	to = strconv.AppendInt(to, int64(person), 10)
	to = append(to, `","properties":{"$lib":"bench","$current_url":"https://shop.example.com/products/`...)
	to = strconv.AppendInt(to, int64(rnd.IntN(1000)), 10)
	to = append(to, `?x=1","price":`...)
	to = strconv.AppendInt(to, int64(rnd.IntN(500)), 10)
	to = append(to, `,"plan":"pro","items":[1,2,3],"referrer":"https://search.example.com/","browser":"Firefox","os":"Linux","width":1920,"height":1080,"locale":"nl-NL","campaign":"winter","ab":"b","note":"some text that is a little longer than the rest of it all","$set":{"plan":"pro"`...)
	if rnd.IntN(10) == 0 {
		to = append(to, `,"visits":`...)
		to = strconv.AppendInt(to, int64(rnd.IntN(1_000_000)), 10)
	}
	to = append(to, `}},"timestamp":"`...)
	to = time.Now().UTC().AppendFormat(to, time.RFC3339Nano)
	return append(to, `"}`...)
}
