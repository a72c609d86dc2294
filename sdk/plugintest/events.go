package plugintest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/sinkv1"
)

// batch is events on their way, and what they were.
type batch struct {
	request *sinkv1.WriteBatchRequest
	events  []sdk.Event
}

func (b *batch) last() uint64 { return b.request.GetLastSeq() }

// some makes n new events of a few people.
func (k *kit) some(n int) []sdk.Event {
	out := make([]sdk.Event, n)
	for i := range out {
		k.serial++
		out[i] = event(fmt.Sprintf("person-%d", k.serial%7), fmt.Sprintf(`{"n":%d,"$lib":"plugintest","path":"/a/%d"}`, k.serial, k.serial%100))
	}
	return out
}

func event(who, properties string) sdk.Event {
	id, _ := uuid.NewV7() // fails only without randomness
	now := time.Now().UTC().Truncate(time.Microsecond)
	return sdk.Event{
		UUID: id.String(), ProjectID: 1, Name: "conformance", DistinctID: who, Timestamp: now, ReceivedAt: now, Properties: json.RawMessage(properties),
	}
}

// batch numbers the events as the next ones.
func (k *kit) batch(events []sdk.Event) *batch {
	first := k.number + 1
	k.number += uint64(max(len(events), 1))
	r := &sinkv1.RecordBatch{Projects: []int64{1}}
	for i := range events {
		id := uuid.MustParse(events[i].UUID)
		r.Ids = append(r.Ids, id[:]...)
		r.Json = append(r.Json, events[i].AppendJSON(nil))
		r.ReceivedUs = append(r.ReceivedUs, events[i].ReceivedAt.UnixMicro())
		r.ProjectIndex = append(r.ProjectIndex, 0)
	}
	return &batch{events: events, request: &sinkv1.WriteBatchRequest{
		InstanceId: instanceID, Generation: 1, BatchId: fmt.Sprintf("conformance:%d-%d", first, k.number), Attempt: 1,
		FirstSeq: first, LastSeq: k.number, Payload: &sinkv1.WriteBatchRequest_Records{Records: r},
	}}
}

// filled makes events that have about size bytes together, at most most of them; 0 is
// any number.
func (k *kit) filled(size, most int) []sdk.Event {
	each := 200 << 10
	if most > 0 {
		each = min(max(each, size/most), 1<<20-1000)
	}
	text := strings.Repeat("x", max(0, min(each, size)-1000))
	n := max(1, size/each)
	if most > 0 {
		n = min(n, most)
	}
	out := make([]sdk.Event, n)
	for i := range out {
		k.serial++
		out[i] = event(fmt.Sprintf("person-%d", k.serial%7), `{"filled":"`+text+`"}`)
	}
	return out
}

// odd are events that are right and unusual.
func odd() []sdk.Event {
	deep := strings.Repeat(`{"d":`, 60) + `1` + strings.Repeat(`}`, 60)
	return []sdk.Event{
		event("odd", `{"big":9007199254740993,"bigger":123456789012345678901234567890,"small":1e-300,"exact":0.1000}`),
		event("odd", `{"text":"\"quoted\" \\ \/ \b\f\n\r\t \u2028 \ud83d\ude00 éß漢"}`),
		event("odd", `{"empty":"","null":null,"list":[],"object":{},"":"no name"}`),
		event("odd", `{"deep":`+deep+`}`),
		event("odd\twith 'quotes', \"more\"; -- and %s $1 漢", `{"a.b":1,"a b":2,"$":3,"A":4,"a":5}`),
		event("odd", `{"nul":"a\u0000b"}`),
	}
}
