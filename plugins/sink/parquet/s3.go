package parquet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/guidonhq/guidon/sdk"
)

// bucket is a bucket of a store that speaks S3. An object appears when all of
// it has arrived.
type bucket struct {
	client       *minio.Client
	name, prefix string
	timeout      time.Duration
}

// openS3 looks whether the bucket is there.
func openS3(ctx context.Context, c s3Config) (*bucket, error) {
	u, err := url.Parse(c.Endpoint)
	if err != nil {
		return nil, c.validate()
	}
	keys := credentials.NewIAM("")
	if c.AccessKey != "" {
		keys = credentials.NewStaticV4(c.AccessKey, c.SecretKey, "")
	}
	lookup := minio.BucketLookupDNS
	if c.PathStyle {
		lookup = minio.BucketLookupPath
	}
	client, err := minio.New(u.Host, &minio.Options{
		Creds: keys, Secure: u.Scheme == "https", Region: c.Region, BucketLookup: lookup,
		MaxRetries: 1, // the server retries, and logs it
	})
	if err != nil {
		return nil, sdk.ConfigError("/s3/endpoint", err)
	}
	b := &bucket{client: client, name: c.Bucket, prefix: c.Prefix, timeout: c.Timeout}
	if b.prefix != "" && !strings.HasSuffix(b.prefix, "/") {
		b.prefix += "/"
	}
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	there, err := client.BucketExists(ctx, b.name)
	if err != nil {
		return nil, classify(err)
	}
	if !there {
		return nil, sdk.ConfigError("/s3/bucket", fmt.Errorf("there is no bucket %q", b.name))
	}
	return b, nil
}

func (b *bucket) put(ctx context.Context, name string, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	_, err := b.client.PutObject(ctx, b.name, b.prefix+name, bytes.NewReader(data), int64(len(data)),
		minio.PutObjectOptions{ContentType: "application/octet-stream", DisableMultipart: true, SendContentMd5: true})
	return classify(err)
}

func (b *bucket) get(ctx context.Context, name string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	o, err := b.client.GetObject(ctx, b.name, b.prefix+name, minio.GetObjectOptions{})
	if err != nil {
		return nil, classify(err)
	}
	data, err := io.ReadAll(o)
	_ = o.Close()
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return nil, nil
	}
	return data, classify(err)
}

func (b *bucket) remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	return classify(b.client.RemoveObject(ctx, b.name, b.prefix+name, minio.RemoveObjectOptions{}))
}

// classify returns the error of an answer of the store.
func classify(err error) error {
	if err == nil {
		return nil
	}
	refused, ok := errors.AsType[minio.ErrorResponse](err)
	if !ok || refused.Code == "" {
		return sdk.Transient(err)
	}
	out := &sdk.Error{Class: sdk.ClassTransient, Code: "s3_" + refused.Code, Message: refused.Message, Source: sdk.SourceDownstream}
	switch refused.Code {
	case "NoSuchBucket", "InvalidBucketName", "PermanentRedirect":
		out.Class, out.Pointer = sdk.ClassConfig, "/s3/bucket"
	case "AuthorizationHeaderMalformed":
		out.Class, out.Pointer = sdk.ClassConfig, "/s3/region"
	case "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "AllAccessDisabled", "AccountProblem":
		out.Class, out.Pointer = sdk.ClassConfig, "/s3/access_key"
	case "SlowDown", "ServiceUnavailable", "RequestLimitExceeded", "QuotaExceeded":
		out.Class = sdk.ClassThrottled
	}
	return out
}
