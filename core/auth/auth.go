// Package auth answers who is there and what they may do. It keeps
// organizations, their people, projects, roles, and two kinds of keys: project
// keys, which client libraries carry in the open and which say which project
// an event or a flag request is for, and personal keys, which are secrets of a
// user, stored hashed, with scopes, for the management interface. It knows
// nothing of HTTP.
//
// ProjectByKey is on the way of every public request, so all projects and
// their keys are held in memory, and a hit takes no lock and no allocation.
// A counter in the database grows with every change; a process reads it every
// few seconds, and when it meets a key it does not know, and reads everything
// again when it moved. Keys made by another process therefore work at once,
// and keys revoked by another process stop within RefreshInterval. While the
// store is down, what memory holds goes on to be answered.
package auth
