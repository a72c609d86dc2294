// Package sdk is what a plugin knows of Guidon: the events it is handed, the
// answers it may give, and Serve, which turns a value that implements Sink,
// Notifier or Matcher into a process the host can supervise.
//
// The package is a letter already sent: names are added, deprecated with a
// date, and never changed.
package sdk
