package ingestion

// LiveRead is how many events the live lane has read, for tests of who goes
// first.
func LiveRead(w *Worker) uint64 { return w.live.filled.Load() }
