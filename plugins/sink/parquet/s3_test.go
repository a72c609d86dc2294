package parquet_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/guidonhq/guidon/sdk"
)

// store starts a store with a bucket.
func store(t *testing.T) (url string, files func() map[string][]byte) {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("events"); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(srv.Close)
	return srv.URL, func() map[string][]byte {
		out := map[string][]byte{}
		list, err := backend.ListBucket("events", nil, gofakes3.ListBucketPage{})
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range list.Contents {
			o, err := backend.GetObject("events", item.Key, nil)
			if err != nil {
				t.Fatal(err)
			}
			name, ours := strings.CutPrefix(item.Key, "pre/")
			if !ours {
				t.Errorf("%s is not under the prefix", item.Key)
			}
			out[name], err = io.ReadAll(o.Contents)
			if err != nil {
				t.Fatal(err)
			}
			o.Contents.Close()
		}
		return out
	}
}

func inBucket(url, bucket string) string {
	return fmt.Sprintf(`{"s3": {"endpoint": %q, "bucket": %q, "prefix": "pre", "access_key": "me", "secret_key": "hush"}}`, url, bucket)
}

func TestEventsArriveInABucket(t *testing.T) {
	t.Parallel()
	url, files := store(t)
	s := opened(t, inBucket(url, "events"))
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if n := len(files()); n != 0 {
		t.Errorf("the check left %d objects", n)
	}
	all := events(200)
	write(t, s, batch(all, 0, 100))
	flush(t, s, 100)
	write(t, s, batch(all, 100, 150))
	flush(t, s, 150) // the server never hears of it
	s, err := try(t, inBucket(url, "events"), 100)
	if err != nil {
		t.Fatal(err)
	}
	write(t, s, batch(all, 100, 200))
	flush(t, s, 200)
	isOnce(t, rowsIn(t, files()), all)
}

func TestABucketThatIsMissingIsTheOperatorsToMake(t *testing.T) {
	t.Parallel()
	url, _ := store(t)
	_, err := try(t, inBucket(url, "nothing"), 0)
	if e := sdk.AsError(err); e == nil || e.Class != sdk.ClassConfig || e.Pointer != "/s3/bucket" {
		t.Error(err)
	}
}

func TestWhatTheAnswersOfAStoreMean(t *testing.T) {
	t.Parallel()
	for code, c := range map[string]struct {
		status int
		class  sdk.Class
	}{
		"AccessDenied":       {403, sdk.ClassConfig},
		"InvalidAccessKeyId": {403, sdk.ClassConfig},
		"NoSuchBucket":       {404, sdk.ClassConfig},
		"SlowDown":           {503, sdk.ClassThrottled},
		"InternalError":      {500, sdk.ClassTransient},
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodHead {
					return // the bucket is there
				}
				w.Header().Set("Content-Type", "application/xml")
				w.WriteHeader(c.status)
				fmt.Fprintf(w, "<Error><Code>%s</Code><Message>no</Message></Error>", code)
			}))
			t.Cleanup(srv.Close)
			err := opened(t, inBucket(srv.URL, "events")).Check(t.Context())
			if e := sdk.AsError(err); e == nil || e.Class != c.class || e.Code != "s3_"+code {
				t.Errorf("%+v", e)
			}
		})
	}
}

func TestAStoreThatIsAwayIsWaitedFor(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	_, err := try(t, inBucket(srv.URL, "events"), 0)
	if e := sdk.AsError(err); e == nil || e.Class != sdk.ClassTransient {
		t.Errorf("%+v", e)
	}
}
