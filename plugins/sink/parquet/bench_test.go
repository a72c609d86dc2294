package parquet_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/guidonhq/guidon/plugins/sink/parquet"
	"github.com/guidonhq/guidon/sdk"
)

// BenchmarkEvents is what an event costs from the batch to the synced file, in
// flushes of 50 000.
func BenchmarkEvents(b *testing.B) {
	s := parquet.New()
	if err := sdk.DecodeConfig([]byte(inDir(b.TempDir(), "")), s.Config()); err != nil {
		b.Fatal(err)
	}
	if _, err := s.Open(b.Context(), sdk.OpenRequest{Instance: "lake"}); err != nil {
		b.Fatal(err)
	}
	const size, batches = 5000, 10
	all := events(size)
	for i := range all {
		all[i].ReceivedAt = noon
		all[i].Properties = json.RawMessage(fmt.Sprintf(`{"$current_url":"https://example.com/page/%d","$browser":"Firefox","$screen_width":1920,"plan":"pro","n":%d}`, i%50, i))
	}
	made := batch(all, 0, size)
	b.SetBytes(int64(made.Size() * batches / (size * batches)))
	b.ReportAllocs()
	seq := uint64(1)
	for done := 0; done < b.N; {
		for range batches {
			made.FirstSeq, made.LastSeq = seq, seq+size-1
			for i := range made.Records {
				made.Records[i].UUID[0], made.Records[i].UUID[1], made.Records[i].UUID[2] = byte(seq), byte(seq>>8), byte(seq>>16)
			}
			if _, err := s.Write(b.Context(), made); err != nil {
				b.Fatal(err)
			}
			seq += size
			done += size
		}
		if _, err := s.Flush(b.Context(), sdk.FlushRequest{UpTo: seq - 1}); err != nil {
			b.Fatal(err)
		}
	}
}
