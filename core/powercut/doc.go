// Package powercut mounts a file system that forgets unsynced data.
//
// It supports tests. A SIGKILL leaves the page cache of the kernel intact, so a
// program that forgets an fsync passes every test that only kills it. A [Disk]
// keeps what each fsync has made durable; [Disk.Cut] then takes away a random part
// of the rest, as a power failure does:
//
//   - Of the pages (4 KiB) that were overwritten since the last fsync of their file,
//     some have the new content, some the old one, and some are torn: each sector
//     (512 bytes) is old or new.
//   - A file that has grown since its last fsync has any length between the two.
//   - Files that were created, removed, renamed or shortened since the last fsync of
//     any file or directory may not have been: a suffix of these changes is undone.
//
// This is what ext4 with data=ordered promises: changes of metadata become durable
// in their order, and an fsync commits all earlier ones. Content of files never
// becomes durable by itself before its fsync in a fixed order.
//
// The file system is FUSE, so tests need Linux, /dev/fuse and the right to mount.
package powercut
