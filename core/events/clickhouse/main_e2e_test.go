//go:build e2e

package clickhouse

import (
	"os"
	"testing"

	"github.com/guidonhq/guidon/plugins/sink/clickhouse/clickhousetest"
)

func TestMain(m *testing.M) { os.Exit(clickhousetest.RunMain(m)) }
