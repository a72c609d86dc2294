package place

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// bucket is a prefix of a bucket.
type bucket struct {
	client       *minio.Client
	name, prefix string
}

const amazon = "https://s3.amazonaws.com"

// openS3 returns a bucket without asking the store.
func openS3(c S3, name, prefix string) (*bucket, error) {
	if name == "" {
		return nil, errors.New("the target has no bucket: write s3://bucket/prefix/")
	}
	endpoint := c.Endpoint
	if endpoint == "" {
		endpoint = amazon
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, errors.New("s3.endpoint must be a URL such as https://s3.example.com")
	}
	if (c.AccessKey == "") != (c.SecretKey == "") {
		return nil, errors.New("s3.access_key and s3.secret_key belong together")
	}
	keys := credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{}})
	if c.AccessKey != "" {
		keys = credentials.NewStaticV4(c.AccessKey, c.SecretKey, "")
	}
	lookup := minio.BucketLookupAuto
	if c.PathStyle {
		lookup = minio.BucketLookupPath
	}
	client, err := minio.New(u.Host, &minio.Options{Creds: keys, Secure: u.Scheme == "https", Region: c.Region, BucketLookup: lookup})
	if err != nil {
		return nil, fmt.Errorf("s3.endpoint: %w", err)
	}
	return &bucket{client: client, name: name, prefix: prefix}, nil
}

// Path implements Place.
func (b *bucket) Path(name string) string { return s3Scheme + b.name + "/" + b.prefix + name }

// The sizes of the parts of an upload. One part is in memory. S3 takes 10,000 parts:
// the estimate may be half of the size.
const (
	minPartBytes = 16 << 20
	maxPartBytes = 5 << 30
	fewParts     = 5000
)

func partBytes(estimate int64) uint64 {
	return uint64(min(max(estimate/fewParts, minPartBytes), maxPartBytes))
}

// Create implements Place. The upload runs while the file is written.
func (b *bucket) Create(ctx context.Context, name string, estimate int64) (File, error) {
	ctx, cancel := context.WithCancel(ctx)
	r, w := io.Pipe()
	u := &upload{PipeWriter: w, cancel: cancel, done: make(chan error, 1)}
	go func() {
		_, err := b.client.PutObject(ctx, b.name, b.prefix+name, r, -1, minio.PutObjectOptions{
			ContentType: "application/octet-stream", PartSize: partBytes(estimate), SendContentMd5: true, DisableContentSha256: true,
		})
		if err = b.explain(name, err); err != nil {
			_ = r.CloseWithError(err)
		}
		u.done <- err
	}()
	return u, nil
}

// upload is an object that is being written.
type upload struct {
	*io.PipeWriter
	cancel context.CancelFunc
	done   chan error
}

// Commit implements File.
func (u *upload) Commit(context.Context) error {
	defer u.cancel()
	_ = u.Close() // never fails
	return <-u.done
}

var errAborted = errors.New("the backup was not completed")

// Abort implements File.
func (u *upload) Abort() {
	_ = u.CloseWithError(errAborted) // never fails
	u.cancel()
	<-u.done //nolint:errcheck // the error is errAborted
}

// Open implements Place.
func (b *bucket) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	o, err := b.client.GetObject(ctx, b.name, b.prefix+name, minio.GetObjectOptions{})
	if err != nil {
		return nil, b.explain(name, err)
	}
	if _, err := o.Stat(); err != nil {
		return nil, errors.Join(b.explain(name, err), o.Close())
	}
	return o, nil
}

// List implements Place.
func (b *bucket) List(ctx context.Context) (out []Entry, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing
	for o := range b.client.ListObjects(ctx, b.name, minio.ListObjectsOptions{Prefix: b.prefix}) {
		if o.Err != nil {
			return nil, b.explain("", o.Err)
		}
		if name := strings.TrimPrefix(o.Key, b.prefix); name != "" && !strings.HasSuffix(name, "/") {
			out = append(out, Entry{Name: name, Bytes: o.Size, At: o.LastModified})
		}
	}
	return out, nil
}

// Remove implements Place.
func (b *bucket) Remove(ctx context.Context, name string) error {
	return b.explain(name, b.client.RemoveObject(ctx, b.name, b.prefix+name, minio.RemoveObjectOptions{}))
}

// Clean implements Place. It ends unfinished uploads of generated names that began
// more than a day ago.
func (b *bucket) Clean(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing
	core := minio.Core{Client: b.client}
	for u := range b.client.ListIncompleteUploads(ctx, b.name, b.prefix, true) {
		if u.Err != nil {
			return b.explain("", u.Err)
		}
		name := strings.TrimPrefix(u.Key, b.prefix)
		if _, ok := IsGenerated(name); !ok || time.Since(u.Initiated) < abandonedAfter {
			continue
		}
		if err := core.AbortMultipartUpload(ctx, b.name, u.Key, u.UploadID); err != nil {
			return b.explain(name, err)
		}
	}
	return nil
}

// explain adds the object to the error of an answer of the store.
func (b *bucket) explain(name string, err error) error {
	if err == nil {
		return nil
	}
	switch minio.ToErrorResponse(err).Code {
	case minio.NoSuchKey:
		return fmt.Errorf("%s: %w", b.Path(name), fs.ErrNotExist)
	case minio.NoSuchBucket:
		return fmt.Errorf("there is no bucket %s: %w", b.name, err)
	}
	return fmt.Errorf("%s: %w", b.Path(name), err)
}
