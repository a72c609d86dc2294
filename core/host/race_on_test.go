//go:build race

package host_test

// raceDetector is whether the test runs with the race detector.
const raceDetector = true
