// Package servermetrics has the metrics of the server as a whole that belong to no
// other package: the build, the space of the data directory, and figures of the stored
// data.
//
// Figures that need queries are read in the background, at most once a minute and for at
// most a hundredth of the time, so that a scrape never waits for the database. Until the
// first reading they have no value; after a failed one they keep the last.
package servermetrics

import (
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// RegisterBuild registers guidon_build_info, whose value is 1. The revision is that of
// the version control system, empty for a build without one.
func RegisterBuild(reg prometheus.Registerer, version string) error {
	revision := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "guidon_build_info", Help: "1, with the version of the server, its revision and the version of Go.",
		ConstLabels: prometheus.Labels{
			"version": version, "revision": revision, "goversion": runtime.Version(),
			"goos": runtime.GOOS, "goarch": runtime.GOARCH,
		},
	})
	g.Set(1)
	return reg.Register(g)
}

// RegisterDisk registers the free space and the size of the file system of a directory.
func RegisterDisk(reg prometheus.Registerer, directory string) error {
	return reg.Register(disk{directory})
}

type disk struct{ directory string }

var (
	freeDesc = prometheus.NewDesc("guidon_data_disk_free_bytes", "Space on the file system of data_dir that the server may use.", nil, nil)
	sizeDesc = prometheus.NewDesc("guidon_data_disk_size_bytes", "Size of the file system of data_dir.", nil, nil)
)

// Describe implements prometheus.Collector.
func (disk) Describe(ch chan<- *prometheus.Desc) { ch <- freeDesc; ch <- sizeDesc }

// Collect implements prometheus.Collector.
func (d disk) Collect(ch chan<- prometheus.Metric) {
	free, size, err := diskSpace(d.directory)
	if err != nil {
		return
	}
	ch <- prometheus.MustNewConstMetric(freeDesc, prometheus.GaugeValue, free)
	ch <- prometheus.MustNewConstMetric(sizeDesc, prometheus.GaugeValue, size)
}
